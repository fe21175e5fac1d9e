import { execFile, execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { promisify } from "node:util";
import { defineTask, isJobId } from "@venturi/core";
import { Queue } from "@venturi/queue";
import { PostgresStore } from "@venturi/store-postgres";
import { Worker } from "@venturi/worker";
import { expectInvariants, testDatabase } from "@venturi-tooling/testing";
import * as v from "valibot";
import { afterAll, describe, expect, it } from "vitest";

// The page, from top to bottom: its blocks run as they stand, and what they enqueue runs like any other job.

const { pool, url } = await testDatabase();
const store = new PostgresStore({ pool });
const operator = new Queue(store);

const page = readFileSync(
  new URL("../../../docs/learning/without-typescript.md", import.meta.url),
  "utf8",
);

function blocks(language: string): string[] {
  return [...page.matchAll(new RegExp(`^\`\`\`${language}\n([\\s\\S]*?)^\`\`\``, "gm"))].map(
    ([, text = ""]) => text,
  );
}

const SendEmail = defineTask({
  kind: "send_email",
  payload: v.object({ to: v.pipe(v.string(), v.email()), subject: v.string() }),
});

const sent: string[] = [];
const runDue = () =>
  new Worker(store)
    .register(SendEmail, ({ to, subject }, ctx) => {
      sent.push(`${to}: ${subject}${ctx.headers["request"] ?? ""}`);
    })
    .runOnce();

afterAll(() => expectInvariants(pool));

describe("docs/learning/without-typescript.md", () => {
  it("has SQL that runs, and whose jobs run", async () => {
    const queries = blocks("sql");
    expect(queries).toHaveLength(6);
    for (const query of queries) await pool.query(query);
    expect(await runDue()).toEqual({ completed: 4, paused: 0, retried: 0, dead: 0 });
    expect([...sent].sort()).toEqual([
      "a@example.com: Hi",
      "a@example.com: Reminder",
      "b@example.com: Order 18",
      "c@example.com: Order 19",
    ]);
    const { jobs } = await operator.jobs({ kind: ["send_email", "bill"], status: "pending" });
    expect(jobs).toMatchObject([
      { kind: "bill", payload: { account: "a", cents: 15 }, dedupKey: "a" },
      { kind: "send_email", payload: { subject: "Order 17" }, headers: { request: "r-1" } },
    ]);
  });

  // Where these programs are at hand; nothing else of the project needs them.
  const programs = [
    {
      language: "sh",
      subject: "From a script",
      program: "bash",
      argument: "-c",
      needs: ["psql", "--version"],
    },
    {
      language: "python",
      subject: "From Python",
      program: "/usr/bin/python3",
      argument: "-c",
      needs: ["/usr/bin/python3", "-c", "import psycopg"],
    },
  ].filter(({ needs: [program = "", ...args] }) => succeeds(program, args));

  it("has the programs in other languages that it tells of", () => {
    expect([blocks("sh"), blocks("python")]).toEqual([[expect.any(String)], [expect.any(String)]]);
    expect(programs.length).toBeLessThanOrEqual(2);
  });

  for (const { language, subject, program, argument } of programs) {
    it(`has a program in ${language} that runs, and whose job runs`, async () => {
      const [text = ""] = blocks(language);
      const env = { ...process.env, DATABASE_URL: url };
      const { stdout } = await promisify(execFile)(program, [argument, text], { env });
      const id = /[0-9A-Z]{26}/.exec(stdout)?.[0] ?? "";
      expect(isJobId(id)).toBe(true);
      expect(stdout).toContain("enqueued");
      await runDue();
      expect(sent).toContainEqual(expect.stringContaining(subject));
      expect(await operator.job(id)).toMatchObject({ status: "completed" });
    });
  }
});

function succeeds(program: string, args: readonly string[]): boolean {
  try {
    execFileSync(program, args, { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

describe("a call by hand", () => {
  const enqueue = (argument: string) =>
    pool.query<{ outcome: string }>("select outcome from venturi_enqueue_v1($1::text::jsonb)", [
      argument,
    ]);
  const id = "019ad0c5-3f2e-7a41-b0de-61c9a7d51c64";

  it("enqueues nothing where there is nothing, and ignores what it does not know", async () => {
    expect((await enqueue("[]")).rows).toEqual([]);
    expect((await pool.query("select * from venturi_enqueue_v1(null)")).rows).toEqual([]);
    const known = await enqueue(JSON.stringify([{ kind: "k", id, priority: null, colour: "red" }]));
    expect(known.rows).toEqual([{ outcome: "enqueued" }]);
  });

  it("whose payload the task refuses ends dead, with the reason in its journal", async () => {
    const { rows } = await pool.query(
      `select venturi_ulid(id::uuid) as job from venturi_enqueue_v1('[{"kind":"send_email","payload":{"to":"nobody"}}]')`,
    );
    expect(await runDue()).toMatchObject({ dead: 1 });
    expect(await operator.journal(rows[0].job)).toMatchObject([
      { outcome: "dead", note: expect.stringContaining("to") },
    ]);
  });

  const decision = { action: "with", candidate: id, version: 0, run_count: 0, payload: 1 };
  it.each([
    ["VT001", [{ kind: "other", id }]],
    ["VT002", [{}]],
    ["VT002", [{ kind: "k", priority: "urgent" }]],
    ["VT002", [{ kind: "k", delay_ms: 1, run_at: "2030-01-01" }]],
    ["VT002", { kind: "k" }],
    ["VT003", [{ kind: "k", dedup_key: "d", decision }]],
  ])("fails with %s for %j", async (code, jobs) => {
    await expect(enqueue(JSON.stringify(jobs))).rejects.toMatchObject({ code });
  });

  it.each([
    ["22P02", "[{]"],
    ["22P05", '[{"kind":"k","payload":"\\u0000"}]'],
  ])("fails with %s for what is no jsonb: %s", async (code, text) => {
    await expect(enqueue(text)).rejects.toMatchObject({ code });
  });

  it("needs no right but that to execute the function", async () => {
    const client = await pool.connect();
    try {
      await client.query("begin; create role bare_caller; set local role bare_caller");
      const call = `select outcome from venturi_enqueue_v1('[{"kind":"k"}]')`;
      expect((await client.query(call)).rows).toEqual([{ outcome: "enqueued" }]);
      await client.query("reset role");
      await client.query("revoke execute on function venturi_enqueue_v1(jsonb) from public");
      await client.query("set local role bare_caller");
      await expect(client.query(call)).rejects.toMatchObject({ code: "42501" });
    } finally {
      await client.query("rollback");
      client.release();
    }
  });
});
