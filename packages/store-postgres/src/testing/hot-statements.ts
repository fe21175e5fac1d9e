import {
  Backoff,
  decideRecovery,
  type EnqueueJob,
  type JobId,
  type StaleClaim,
  type WorkerId,
} from "@venturi/core";
import type pg from "pg";
import { expect } from "vitest";
import type { PgQuery } from "../pg-like.ts";
import { PostgresStore } from "../postgres-store.ts";
import { promote } from "../sql/promote.ts";
import { kindId } from "./backlog.ts";
import type { Explained, PlanNode } from "./explainer.ts";
import { recordingPool } from "./recording-pool.ts";
import {
  claimKind,
  claimRequest,
  enqueue,
  job,
  names,
  newId,
  settlement,
  startWorker,
} from "./store-fixture.ts";

export const twelve = Array.from({ length: 12 }, (_, index) => `k${index}`);

/** The statements that jobs pass through, with the pages that each may touch for a hundred of them: half as many again as it did. */
const bounds = {
  "claim of one kind": 2_000,
  "claim of twelve kinds": 2_200,
  "claim that finds nothing": 60,
  "claim behind marks": 2_200,
  "claim of all of one kind": 2_000,
  "claim of all that does not fit": 300,
  "claim of all beside a backlog": 160,
  "claim of all that finds nothing": 60,
  "claim of a named job": 30,
  promotion: 3_000,
  "hand back": 1_700,
  "extension of leases": 1_700,
  "settle as completed": 2_000,
  "settle with every outcome": 2_400,
  verdicts: 1_500,
  recovery: 2_500,
  "journal of a job": 20,
  beat: 20,
  "enqueue of new jobs": 3_000,
  "enqueue of new keys": 4_400,
  "enqueue that merges": 7_500,
} as const;
export type Verb = keyof typeof bounds;
export type Queries = Readonly<Record<Verb, PgQuery>>;
export const verbs = Object.keys(bounds) as Verb[];

/** No walk over a table, no sort of a backlog, and no more pages than the work is worth. */
export function checkPlan(name: Verb, { nodes, buffers }: Explained): void {
  expect(nodes.flatMap(excess)).toEqual([]);
  expect(buffers).toBeLessThanOrEqual(bounds[name]);
}

const large = ["queue", "jobs", "journal", "dead"].map((table) => `venturi_${table}`);
const most = 5_000;

function excess(node: PlanNode): string[] {
  const relation = node["Relation Name"] ?? "";
  const rows =
    ((node["Actual Rows"] ?? 0) + (node["Rows Removed by Filter"] ?? 0)) *
    (node["Actual Loops"] ?? 0);
  const text = `${node["Node Type"]} ${relation} of ${rows} rows`;
  if (node["Node Type"].includes("Seq Scan") && large.includes(relation)) return [text];
  return rows > most ? [text] : [];
}

/** The statements as the store sends them, for a hundred jobs each. */
export async function hotStatements(pool: pg.Pool): Promise<Queries> {
  const recorder = recordingPool(pool);
  const store = new PostgresStore({ pool: recorder });
  const worker = await startWorker(store);
  const kinds = ["a", "none", "few", "named", "later", "due", ...twelve];
  const withheld = async (work: () => Promise<unknown>, index = 0) =>
    (await recorder.queriesWithheld(work)).at(index) as PgQuery;
  /** No rows are no answer to an enqueue. */
  const unanswered = (jobs: readonly EnqueueJob[]) =>
    withheld(() => expect(enqueue(store, ...jobs)).rejects.toMatchObject({ code: "database" }));
  const claim = (some: readonly string[], by: WorkerId) =>
    store.claim(
      claimRequest(
        by,
        some.map((kind) => claimKind(kind, { leaseMs: 1 })),
        { limit: 100 },
      ),
    );
  /** A claim of a worker that has claimed nothing before. */
  const newClaim = async (some: readonly string[]) => {
    const by = await startWorker(store);
    return withheld(() => claim(some, by));
  };
  /** A claim that follows one which took all that waited, and so asks for all at first. */
  const claimAll = async (some: readonly string[]) => {
    const by = await startWorker(store);
    await claim(["none"], by);
    return withheld(() => claim(some, by));
  };
  /** A claim for a new job that a notification named, which follows one that took all that waited. */
  const claimNamed = async (kind: string) => {
    const by = await startWorker(store);
    await claim(["none"], by);
    const [hint] = await enqueue(store, job(kind));
    const named = { limit: 100, hint: hint as JobId };
    return withheld(() => store.claim(claimRequest(by, [kind], named)));
  };
  const claimed = async () => {
    const { jobs } = await claim(["a"], worker);
    const unknown = Array.from({ length: 100 }, () => ({ id: newId(), runCount: 1 }));
    return jobs.length > 0 ? jobs : unknown;
  };
  await store.claim(
    claimRequest(
      worker,
      kinds.map((kind) => claimKind(kind)),
      { limit: 1 },
    ),
  );

  const held = await claimed();
  // By themselves: a lock that was given up leaves its trace on a row, which the lean statement avoids.
  const untouched = await claimed();
  const outcomes = ["completed", "paused", "retried", "dead", "released"] as const;
  const mixed = held.map((each, index) => settlement(each, outcomes[index % 5], { note: "x" }));
  const stale = (await claimed()).map(({ id, runCount }, index): StaleClaim => {
    const backstop = index % 2 === 0 ? 1 : null;
    const rest = { kind: "a", payload: "{}", failureCount: 0, backstop, overdue: true };
    return { jobId: id, runCount, holder: worker, ...rest };
  });
  const keyed: EnqueueJob[] = Array.from({ length: 100 }, (_, index) =>
    job("a", { dedupKey: `key ${index}`, priority: "low" }),
  );
  await enqueue(store, ...keyed);
  // What an earlier call has left, and then a hundred.
  while ((await claim(["few"], worker)).jobs.length > 0);
  await enqueue(store, ...keyed.map(() => job("few")));
  const { rows } = await pool.query(
    "select venturi_ulid(job_id) as id from venturi_journal limit 1",
  );
  const registration = {
    name: "w",
    kinds,
    pollMaxMs: 5,
    workerTimeoutMs: 1e6,
    shortestLeaseMs: 1e6,
  };
  const recoveries = stale.map((each) => decideRecovery(each, new Backoff(), 0.5));
  return {
    "claim of one kind": await newClaim(["a"]),
    "claim of twelve kinds": await newClaim(twelve),
    "claim that finds nothing": await newClaim(["none", "later"]),
    "claim behind marks": await newClaim(twelve).then(({ values, ...rest }) => ({
      ...rest,
      values: values.map((value, at) => (at >= 8 && at <= 13 ? twelve.map(() => 0) : value)),
    })),
    "claim of all of one kind": await claimAll(["few"]),
    "claim of all that does not fit": await claimAll(twelve),
    "claim of all beside a backlog": await claimAll(["a"]),
    "claim of all that finds nothing": await claimAll(["none", "later"]),
    "claim of a named job": await claimNamed("named"),
    promotion: {
      text: promote(names).text,
      values: [[await kindId(pool, "due")], [100], [0], [0], [0]],
    },
    "hand back": await withheld(() =>
      store.handBack({
        worker,
        claims: held.map(({ id, runCount }) => ({ jobId: id, runCount })),
      }),
    ),
    "extension of leases": await withheld(() =>
      store.extendLease({
        worker,
        extensions: held.map(({ id, runCount }) => ({ jobId: id, runCount, leaseMs: 60_000 })),
      }),
    ),
    "settle as completed": await withheld(() =>
      store.settle({ worker, settlements: untouched.map((each) => settlement(each)) }),
    ),
    "settle with every outcome": await withheld(() => store.settle({ worker, settlements: mixed })),
    verdicts: await withheld(() => store.settle({ worker, settlements: mixed }), -1),
    recovery: await withheld(() => store.recover({ recoveries })),
    "journal of a job": await withheld(() =>
      store.readJournal({ jobId: rows[0]?.id ?? newId(), limit: 10 }),
    ),
    beat: await withheld(() => store.beat({ worker, ...registration })),
    "enqueue of new jobs": await unanswered(keyed.map(() => job("a"))),
    "enqueue of new keys": await unanswered(
      keyed.map(({ dedupKey }) => job("k1", { dedupKey: `new ${dedupKey}` })),
    ),
    "enqueue that merges": await unanswered(
      keyed.map(({ dedupKey = null }) => job("a", { dedupKey })),
    ),
  };
}
