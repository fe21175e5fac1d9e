import { Queue } from "@venturi/queue";
import { PostgresStore } from "@venturi/store-postgres";
import { expectInvariants, testDatabase } from "@venturi-tooling/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Child } from "./testing/child-process.ts";
import type { PointRecord, SpanRecord, Telemetry } from "./testing/telemetry.ts";

const database = await testDatabase();
const queue = new Queue(new PostgresStore({ pool: database.pool }));

const outcome = "messaging.venturi.outcome";
const kind = "messaging.destination.name";

let producer: Telemetry;
let worker: Telemetry;

// A producer that ends; a worker that is killed in the middle of a run; one that recovers that run and works to the end.
beforeAll(async () => {
  producer = await new Child("producer", database.url).telemetry();
  const doomed = new Child("worker", database.url, "hanging");
  await doomed.said("hanging");
  await doomed.kill();
  const other = new Child("worker", database.url);
  await ended();
  worker = await other.stop();
}, 120_000);
afterAll(() => expectInvariants(database.pool));

async function ended(): Promise<void> {
  for (;;) {
    const { pendingByKind, claimed } = await queue.stats();
    if (claimed === 0 && Object.keys(pendingByKind).length === 0) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** The spans of one name, by their run count. */
function runsOf(name: string): SpanRecord[] {
  const count = ({ attributes }: SpanRecord) => Number(attributes["messaging.venturi.run_count"]);
  return worker.spans.filter((span) => span.name === name).sort((a, b) => count(a) - count(b));
}

function enqueueOf(name: string): SpanRecord {
  const span = producer.spans.find((found) => found.name === name);
  if (span === undefined) throw new Error(`no span named ${name}`);
  return span;
}

/** Sums of a metric by kind and outcome. */
function sums(points: readonly PointRecord[], ...names: string[]): Record<string, number> {
  const found: Record<string, number> = {};
  for (const { name, attributes, value } of points) {
    if (!names.includes(name)) continue;
    const key = `${attributes[kind]} ${attributes[outcome] ?? ""}`.trim();
    found[key] = (found[key] ?? 0) + value;
  }
  return found;
}

/** The same of the journal, entries of merges apart from those that end runs. */
async function journal(merges: boolean): Promise<Record<string, number>> {
  const { rows } = await database.pool.query<{ key: string; entries: number }>(
    `select k.name || ' ' || venturi_outcome(e.outcome) as key, count(*)::int as entries
     from venturi_journal e join venturi_kinds k on k.id = e.kind_id
     where (venturi_outcome(e.outcome) = 'merged') = $1 group by 1`,
    [merges],
  );
  return Object.fromEntries(rows.map(({ key, entries }) => [key, entries]));
}

describe("a trace across processes", () => {
  test("goes from the request to the enqueue, to a run that failed, and to the one that completed", () => {
    const enqueue = enqueueOf("enqueue flaky");
    const [failed, completed] = runsOf("run flaky");
    expect(enqueue.parentSpanId).toBe(enqueueOf("request").spanId);
    const common = {
      kind: "CONSUMER",
      traceId: enqueue.traceId,
      parentSpanId: enqueue.spanId,
      links: [enqueue.spanId],
    };
    const messageId = enqueue.attributes["messaging.message.id"];
    expect(failed).toMatchObject({
      ...common,
      status: "ERROR",
      attributes: {
        "messaging.system": "venturi",
        "messaging.operation.name": "run",
        "messaging.operation.type": "process",
        "messaging.destination.name": "flaky",
        "messaging.message.id": messageId,
        "messaging.venturi.run_count": 1,
        "messaging.venturi.failure_count": 0,
        "messaging.venturi.outcome": "retried",
        "error.type": "TypeError",
      },
    });
    expect(completed).toMatchObject({
      ...common,
      status: "UNSET",
      attributes: {
        "messaging.message.id": messageId,
        "messaging.venturi.run_count": 2,
        "messaging.venturi.failure_count": 1,
        "messaging.venturi.outcome": "completed",
      },
    });
  });

  test("goes on with what handlers do, and brings them the baggage of the request", () => {
    const [, completed] = runsOf("run flaky");
    const inside = worker.spans.filter(({ name }) => name === "inside flaky");
    expect(inside.map(({ attributes }) => attributes["tenant"])).toEqual(["t1", "t1"]);
    expect(inside.map(({ parentSpanId }) => parentSpanId)).toEqual(
      runsOf("run flaky").map(({ spanId }) => spanId),
    );
    const followUp = worker.spans.find(({ name }) => name === "enqueue follow");
    expect(followUp?.parentSpanId).toBe(completed?.spanId);
    expect(runsOf("run follow")).toMatchObject([{ parentSpanId: followUp?.spanId }]);
  });

  test("has a run that paused, one that died, and one whose first worker was killed", () => {
    const told = (name: string) =>
      runsOf(name).map(({ attributes }) => [
        attributes["messaging.venturi.run_count"],
        attributes[outcome],
      ]);
    expect(told("run pausing")).toEqual([
      [1, "paused"],
      [1, "paused"],
      [2, "completed"],
      [2, "completed"],
    ]);
    expect(told("run dying")).toEqual([[1, "dead"]]);
    // The span of its first run went down with its process.
    expect(told("run hanging")).toEqual([[2, "completed"]]);
    const enqueue = enqueueOf("enqueue hanging");
    expect(runsOf("run hanging")).toMatchObject([
      { traceId: enqueue.traceId, parentSpanId: enqueue.spanId },
    ]);
  });
});

describe("metrics of the processes", () => {
  test("add up to the journal's entries of runs, recovered ones included", async () => {
    const counted = sums(worker.points, "venturi.jobs.settled", "venturi.jobs.recovered");
    expect(counted).toEqual(await journal(false));
    expect(counted["hanging stale-recovered"]).toBe(1);
    expect(counted["dying dead"]).toBe(1);
  });

  test("count as merged what the journal has as merged, and as enqueued every job there is", async () => {
    const merged = sums(producer.points, "venturi.jobs.merged");
    expect(merged).toEqual({ "merged replaced": 3 });
    expect(await journal(true)).toEqual({ "merged merged": 3 });
    const { rows } = await database.pool.query("select count(*)::int as jobs from venturi_jobs");
    const points = [...producer.points, ...worker.points];
    const enqueued = Object.values(sums(points, "venturi.jobs.enqueued"));
    expect(enqueued.reduce((sum, value) => sum + value, 0)).toBe(rows[0].jobs);
  });

  test("count a claim for every run of the worker that told of them", async () => {
    const runs = Object.values(sums(worker.points, "venturi.jobs.settled"));
    const claims = Object.values(sums(worker.points, "venturi.jobs.claimed"));
    const back = Object.values(sums(worker.points, "venturi.jobs.handed_back"));
    const total = (values: number[]) => values.reduce((sum, value) => sum + value, 0);
    expect(total(claims) - total(back)).toBe(total(runs));
  });
});
