import { FAR_FUTURE_MS } from "@venturi/core";
import { equal, failure, holds, type Topic } from "./bench.ts";

/** Needs `enqueue` and `findJob` alone, so it is what a new adapter passes first. */
export const enqueueTopic: Topic = {
  topic: "enqueue",
  checks: [
    {
      name: "a job is stored as it was given, pending and due at once",
      check: async (bench) => {
        const id = await bench.add({ kind: "mail", payload: '{"to":"a@example.com"}' });
        const { createdAt, visibleAt, ...job } = await bench.find(id);
        equal(visibleAt, createdAt);
        equal(
          { ...job, headers: { ...job.headers } },
          {
            id,
            kind: "mail",
            status: "pending",
            priority: "normal",
            payload: { to: "a@example.com" },
            carry: null,
            headers: {},
            runCount: 0,
            failureCount: 0,
            dedupKey: null,
            finishedAt: null,
            claimedBy: null,
            leaseExpiresAt: null,
          },
        );
      },
    },
    {
      name: "the answers stand in the order of the jobs",
      check: async (bench) => {
        const jobs = [bench.job(), bench.job({ kind: "b" }), bench.job()].reverse();
        const answers = (await bench.store.enqueue({ jobs })).jobs;
        equal(
          answers,
          jobs.map(({ id }) => ({ id, outcome: "enqueued" })),
        );
      },
    },
    {
      name: "a call without jobs changes nothing",
      check: async (bench) => equal(await bench.store.enqueue({ jobs: [] }), { jobs: [] }),
    },
    {
      name: "payload and headers come back as they were given",
      check: async (bench) => {
        const payload = `{"text":"ä😀\\n\\"","n":[0,-1.5,1e21,null,true],"deep":{"a":{"b":[]}},"__proto__":{"x":1}}`;
        const headers = { traceparent: "00-ab-cd-01", "ä b": "" };
        const job = await bench.find(await bench.add({ payload, headers }));
        equal(job.payload, JSON.parse(payload));
        equal(job.headers, headers);
      },
    },
    {
      name: "every JSON value is a payload",
      check: async (bench) => {
        for (const payload of ["null", "0", '""', "[]", "false", '"text"'])
          equal((await bench.find(await bench.add({ payload }))).payload, JSON.parse(payload));
      },
    },
    {
      name: "priorities and dedup keys are kept, the empty key among them",
      check: async (bench) => {
        const high = await bench.find(await bench.add({ priority: "high", dedupKey: "" }));
        const low = await bench.find(await bench.add({ priority: "low", dedupKey: "k" }));
        equal([high.priority, high.dedupKey], ["high", ""]);
        equal([low.priority, low.dedupKey], ["low", "k"]);
      },
    },
    {
      name: "a delay is counted by the store's clock",
      check: async (bench) => {
        const { createdAt, visibleAt } = await bench.find(await bench.add({ delayMs: 90_000 }));
        holds(visibleAt, "a pending job has its due time");
        equal(Number(visibleAt) - createdAt.getTime(), 90_000);
      },
    },
    {
      name: "an absolute time is kept, and one that has passed is now",
      check: async (bench) => {
        const runAt = Date.parse("2100-01-01T00:00:00.123Z");
        equal((await bench.find(await bench.add({ runAt }))).visibleAt, new Date(runAt));
        const { createdAt, visibleAt } = await bench.find(await bench.add({ runAt: 0 }));
        equal(visibleAt, createdAt);
      },
    },
    {
      name: "huge delays saturate to a far date that comes back whole",
      check: async (bench) => {
        for (const far of [{ delayMs: Number.MAX_VALUE }, { runAt: FAR_FUTURE_MS + 1 }])
          equal((await bench.find(await bench.add(far))).visibleAt, new Date(FAR_FUTURE_MS));
      },
    },
    {
      name: "a repeated id returns what the first call did and stores nothing",
      check: async (bench) => {
        const job = bench.job({ payload: "1" });
        await bench.store.enqueue({ jobs: [job] });
        const again = await bench.store.enqueue({ jobs: [{ ...job, payload: "2" }, bench.job()] });
        equal(again.jobs[0], { id: job.id, outcome: "repeated" });
        equal(again.jobs[1]?.outcome, "enqueued");
        equal((await bench.find(job.id)).payload, 1);
      },
    },
    {
      name: "an id that stands twice in one call is one job",
      check: async (bench) => {
        const job = bench.job({ payload: "1" });
        const { jobs } = await bench.store.enqueue({ jobs: [job, { ...job, payload: "2" }] });
        equal(jobs, [
          { id: job.id, outcome: "enqueued" },
          { id: job.id, outcome: "repeated" },
        ]);
        equal((await bench.find(job.id)).payload, 1);
      },
    },
    {
      name: "an id of another kind or key is id-conflict, and nothing of its call is stored",
      check: async (bench) => {
        const known = bench.job({ dedupKey: "k" });
        await bench.store.enqueue({ jobs: [known] });
        for (const wrong of [
          { ...known, kind: "b" },
          { ...known, dedupKey: "l" },
          { ...known, dedupKey: null },
        ]) {
          const other = bench.job();
          const { isRetryable } = await failure(
            bench.store.enqueue({ jobs: [other, wrong] }),
            "id-conflict",
          );
          equal(isRetryable, false);
          equal(await bench.store.findJob({ id: other.id }), { job: null });
        }
      },
    },
    {
      name: "an aborted signal rejects with its reason, and nothing is stored",
      check: async (bench) => {
        const job = bench.job();
        const reason = new Error("stop");
        const call = bench.store.enqueue({ jobs: [job], signal: AbortSignal.abort(reason) });
        equal(await call.catch((error: unknown) => error), reason);
        equal(await bench.store.findJob({ id: job.id }), { job: null });
      },
    },
    {
      name: "a job that nobody has enqueued is null",
      check: async (bench) =>
        equal(await bench.store.findJob({ id: bench.newId() }), { job: null }),
    },
  ],
};
