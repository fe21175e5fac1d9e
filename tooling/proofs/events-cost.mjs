// What the events cost a job while nobody listens. Builds queue and worker twice, as they are and with their events.ts
// emptied, and lets both enqueue and run jobs over a store that does nothing, by turns and each time in a process of its
// own: the compiler's luck with one process is worth more than what is measured. Prints nanoseconds of processor time a
// job: of either build, of the differences of processes that follow each other, and of the calls by themselves.
// Arguments: processes of each (16), jobs a turn (100000).
import { execFile } from "node:child_process";
import { mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { build } from "tsup";

const execute = promisify(execFile);

const [processes = 16, jobs = 100_000] = process.argv.slice(2).map(Number);
const here = fileURLToPath(new URL(".", import.meta.url));
const folder = await mkdtemp(join(tmpdir(), "venturi-events-cost-"));

/** Replaces what queue and worker publish by nothing. */
const withoutEvents = {
  name: "without events",
  setup({ onLoad }) {
    onLoad({ filter: /packages\/queue\/src\/events\.ts$/ }, () => ({
      contents: "export const enqueueStarted = () => null;",
    }));
    onLoad({ filter: /packages\/worker\/src\/events\.ts$/ }, () => ({
      contents: `export class WorkerEvents {
        started() {} stopped() {} claimed() {} handedBack() {} ended() {}
        settled() {} lost() {} dropped() {} recovered() {}
        callHandler({ registration, payload }, context, state) {
          return registration.handler(payload, context, state);
        }
      }`,
    }));
  },
};

async function load(name, plugins) {
  const outDir = join(folder, name);
  await build({
    entry: { drive: join(here, "events-cost/drive.ts") },
    config: false,
    silent: true,
    format: ["esm"],
    platform: "node",
    target: "node20",
    outDir,
    noExternal: [/^@venturi\//],
    esbuildPlugins: plugins,
    esbuildOptions: (options) => {
      options.conditions = ["@venturi/source"];
    },
  });
  return pathToFileURL(join(outDir, "drive.js")).href;
}

const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];
const rounded = (value) => Math.round(value * 10) / 10;

try {
  // What is left outside of the bundles is found from there.
  await symlink(join(here, "../../packages/core/node_modules"), join(folder, "node_modules"));
  const builds = [await load("with", []), await load("without", [withoutEvents])];
  const times = [[], []];
  const differences = [];
  for (let pair = 0; pair < processes; pair += 1) {
    const took = [0, 0];
    // Whoever is first has the cooler machine: they take turns at that, too.
    for (const which of pair % 2 === 0 ? [0, 1] : [1, 0]) {
      const child = [
        fileURLToPath(import.meta.resolve("./events-cost/turns.mjs")),
        builds[which],
        jobs,
      ];
      const { stdout } = await execute(process.execPath, child.map(String));
      took[which] = Number(stdout);
    }
    times[0].push(took[0]);
    times[1].push(took[1]);
    differences.push(took[0] - took[1]);
  }
  differences.sort((a, b) => a - b);
  const quartile = (part) => rounded(differences[Math.floor(differences.length * part)]);
  console.log({
    node: process.version,
    processes,
    jobs,
    "with events.ts, median and least": [rounded(median(times[0])), rounded(Math.min(...times[0]))],
    "without, median and least": [rounded(median(times[1])), rounded(Math.min(...times[1]))],
    "difference, median": rounded(median(differences)),
    "difference, quartiles": [quartile(0.25), quartile(0.75)],
    "the calls of one job by themselves, ns": rounded(
      (await import(builds[0])).callsAlone(10_000_000),
    ),
  });
} finally {
  await rm(folder, { recursive: true, force: true });
}
