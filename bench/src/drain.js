var __addDisposableResource = (this && this.__addDisposableResource) || function (env, value, async) {
    if (value !== null && value !== void 0) {
        if (typeof value !== "object" && typeof value !== "function") throw new TypeError("Object expected.");
        var dispose, inner;
        if (async) {
            if (!Symbol.asyncDispose) throw new TypeError("Symbol.asyncDispose is not defined.");
            dispose = value[Symbol.asyncDispose];
        }
        if (dispose === void 0) {
            if (!Symbol.dispose) throw new TypeError("Symbol.dispose is not defined.");
            dispose = value[Symbol.dispose];
            if (async) inner = dispose;
        }
        if (typeof dispose !== "function") throw new TypeError("Object not disposable.");
        if (inner) dispose = function() { try { inner.call(this); } catch (e) { return Promise.reject(e); } };
        env.stack.push({ value: value, dispose: dispose, async: async });
    }
    else if (async) {
        env.stack.push({ async: true });
    }
    return value;
};
var __disposeResources = (this && this.__disposeResources) || (function (SuppressedError) {
    return function (env) {
        function fail(e) {
            env.error = env.hasError ? new SuppressedError(e, env.error, "An error was suppressed during disposal.") : e;
            env.hasError = true;
        }
        var r, s = 0;
        function next() {
            while (r = env.stack.pop()) {
                try {
                    if (!r.async && s === 1) return s = 0, env.stack.push(r), Promise.resolve().then(next);
                    if (r.dispose) {
                        var result = r.dispose.call(r.value);
                        if (r.async) return s |= 2, Promise.resolve(result).then(next, function(e) { fail(e); return next(); });
                    }
                    else s |= 1;
                }
                catch (e) {
                    fail(e);
                }
            }
            if (s === 1) return env.hasError ? Promise.reject(env.error) : Promise.resolve();
            if (env.hasError) throw env.error;
        }
        return next();
    };
})(typeof SuppressedError === "function" ? SuppressedError : function (error, suppressed, message) {
    var e = new Error(message);
    return e.name = "SuppressedError", e.error = error, e.suppressed = suppressed, e;
});
/**
 * Drains queues full of no-op jobs with one worker process: venturi and graphile-worker at its best settings in
 * turn, and venturi once more behind a snapshot that another session holds for the whole run.
 *
 * Usage: pnpm --dir bench drain [--jobs 100000] [--concurrency 100] [--payload 20] [--rounds 3] [--json FILE]
 */
import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { cpus } from "node:os";
import { fileURLToPath } from "node:url";
import { parseArgs, promisify } from "node:util";
import { createDatabase, dropDatabase, providePostgres } from "@venturi-tooling/postgres";
import pg from "pg";
import { median, spread } from "./figures.ts";
const { values } = parseArgs({
    options: {
        jobs: { type: "string", default: "100000" },
        concurrency: { type: "string", default: "100" },
        payload: { type: "string", default: "20" },
        rounds: { type: "string", default: "3" },
        json: { type: "string" },
    },
});
const settings = {
    jobs: Number(values.jobs),
    concurrency: Number(values.concurrency),
    payloadBytes: Number(values.payload),
};
const systems = ["venturi", "graphile-worker", "venturi behind a held snapshot"];
const execute = promisify(execFile);
async function drain(serverUrl, system) {
    const databaseUrl = await createDatabase(serverUrl, {});
    const holder = new pg.Client(databaseUrl);
    try {
        if (system === "venturi behind a held snapshot") {
            await holder.connect();
            await holder.query("begin isolation level repeatable read");
            // With a transaction id of its own, so that nothing that ends from now on can be cleaned up.
            await holder.query("select pg_current_xact_id()");
        }
        const file = system === "graphile-worker" ? "graphile-worker.ts" : "venturi.ts";
        const script = fileURLToPath(new URL(`systems/${file}`, import.meta.url));
        const { stdout } = await execute(process.execPath, [
            "--conditions=@venturi/source",
            "--import",
            "tsx",
            script,
            JSON.stringify({ ...settings, databaseUrl }),
        ], { timeout: 300_000 });
        return JSON.parse(stdout);
    }
    finally {
        await holder.end();
        await dropDatabase(serverUrl, databaseUrl);
    }
}
var server, figures, of, rate, lastTenth, ratios, held;
const env_1 = { stack: [], error: void 0, hasError: false };
try {
    server = __addDisposableResource(env_1, await providePostgres({
        settings: {
            shared_preload_libraries: "pg_stat_statements",
            max_wal_size: "8GB",
            checkpoint_timeout: "1h",
            shared_buffers: "512MB",
        },
    }), true);
    figures = new Map(systems.map((system) => [system, []]));
    for (let round = 1; round <= Number(values.rounds); round += 1) {
        for (const system of systems) {
            const result = await drain(server.url, system);
            figures.get(system)?.push(result);
            console.log(`round ${round}, ${system}: ${Math.round(result.drainPerSecond)} jobs/s, by tenth ${result.byTenth.join(" ")}`);
        }
    }
    of = (system, pick) => (figures.get(system) ?? []).map(pick);
    rate = (result) => result.drainPerSecond;
    lastTenth = (result) => result.byTenth.at(-1) ?? Number.NaN;
    ratios = of("venturi", rate).map((value, index) => value / (of("graphile-worker", rate)[index] ?? Number.NaN));
    console.log(`\n${settings.jobs} no-op jobs, payload ${settings.payloadBytes} B, one process, concurrency ${settings.concurrency},` +
        ` Node ${process.version}, ${cpus().length} × ${cpus()[0]?.model ?? "CPU"}; median (lowest–highest) of ${values.rounds}`);
    for (const system of systems) {
        console.log(`${system}
  enqueue in batches of 1,000, jobs/s   ${spread(of(system, (r) => r.enqueuePerSecond))}
  drain, jobs/s                         ${spread(of(system, rate))}
  last tenth, jobs/s                    ${spread(of(system, lastTenth))}
  WAL bytes per job, enqueue            ${spread(of(system, (r) => r.walBytesPerJob.enqueue))}
  WAL bytes per job, drain              ${spread(of(system, (r) => r.walBytesPerJob.drain))}
  statements per job                    ${spread(of(system, (r) => r.statementsPerJob), 4)}
  heap-only share of queue updates      ${spread(of(system, (r) => r.hotShare ?? Number.NaN), 3)}`);
    }
    held = median(of("venturi behind a held snapshot", lastTenth));
    console.log(`venturi ÷ graphile-worker, round by round: ${spread(ratios, 2)}`);
    console.log(`last tenth behind a held snapshot ÷ last tenth without: ${(held / median(of("venturi", lastTenth))).toFixed(2)}`);
    if (values.json !== undefined) {
        await writeFile(values.json, JSON.stringify({ settings, figures: Object.fromEntries(figures) }, null, 2));
    }
}
catch (e_1) {
    env_1.error = e_1;
    env_1.hasError = true;
}
finally {
    const result_1 = __disposeResources(env_1);
    if (result_1)
        await result_1;
}
