import { equal, failure, type Topic } from "./bench.ts";

export const mergeTopic: Topic = {
  topic: "merge",
  checks: [
    {
      name: "keep leaves the pending job as it is, with one merged entry",
      check: async (bench) => {
        const id = await bench.add({ dedupKey: "k", payload: "1", priority: "low" });
        const before = await bench.find(id);
        const [kept] = await bench.enqueue({ dedupKey: "k", payload: "2", merge: "keep" });
        equal(kept, { id, outcome: "kept" });
        equal(await bench.find(id), before);
        const [entry, ...rest] = await bench.journal(id);
        equal(
          [entry?.outcome, entry?.note, entry?.runNo, entry?.worker],
          ["merged", "keep", 0, null],
        );
        equal(rest, []);
      },
    },
    {
      name: "replace takes payload, priority and headers from the incoming job and keeps the id",
      check: async (bench) => {
        const id = await bench.add({ dedupKey: "k", payload: "1", headers: { a: "1" } });
        const [replaced] = await bench.enqueue({
          dedupKey: "k",
          payload: "2",
          priority: "high",
          headers: { b: "2" },
        });
        equal(replaced, { id, outcome: "replaced" });
        const { payload, priority, headers } = await bench.find(id);
        equal([payload, priority, { ...headers }], [2, "high", { b: "2" }]);
        equal(await bench.outcomes(id), ["merged"]);
      },
    },
    {
      name: "replace is due at the earlier of the two times",
      check: async (bench) => {
        const at = (minute: number) => Date.parse("2100-01-01T00:00:00Z") + minute * 60_000;
        const id = await bench.add({ dedupKey: "k", runAt: at(2) });
        await bench.enqueue({ dedupKey: "k", runAt: at(3) });
        equal((await bench.find(id)).visibleAt, new Date(at(2)));
        await bench.enqueue({ dedupKey: "k", runAt: at(1) });
        equal((await bench.find(id)).visibleAt, new Date(at(1)));
      },
    },
    {
      name: "replace puts the carry back to its initial value; run count and journal stay",
      check: async (bench) => {
        const run = await bench.running({ dedupKey: "k" });
        await bench.settle(run, "paused", { carry: '{"page":3}' });
        await bench.enqueue({ dedupKey: "k" });
        const { carry, runCount } = await bench.find(run.id);
        equal([carry, runCount], [null, 1]);
        equal(await bench.outcomes(run.id), ["paused", "merged"]);
      },
    },
    {
      name: "replace takes the lease of the incoming job, keep leaves it",
      check: async (bench) => {
        await bench.enqueue({ dedupKey: "k", leaseMs: 5_000 });
        await bench.enqueue({ dedupKey: "k", leaseMs: 7_000, merge: "keep" });
        const run = await bench.claimOne(await bench.worker());
        equal(run.leaseMs, 5_000);
        await bench.settle(run, "released");
        await bench.enqueue({ dedupKey: "k", leaseMs: 7_000 });
        equal((await bench.claimOne(await bench.worker())).leaseMs, 7_000);
      },
    },
    {
      name: "independent is a plain new job",
      check: async (bench) => {
        const first = bench.job({ dedupKey: "k" });
        const second = bench.job({ dedupKey: "k", merge: "independent" });
        await bench.store.enqueue({ jobs: [first] });
        equal((await bench.store.enqueue({ jobs: [second] })).jobs, [
          { id: second.id, outcome: "enqueued" },
        ]);
        equal(await bench.query(), [second.id, first.id]);
        equal(await bench.outcomes(first.id), []);
      },
    },
    {
      name: "the candidate is the pending job that came first",
      check: async (bench) => {
        const first = await bench.add({ dedupKey: "k" });
        await bench.add({ dedupKey: "k", merge: "independent" });
        equal(await bench.add({ dedupKey: "k" }), first);
      },
    },
    {
      name: "claimed and ended jobs never block, nor do other kinds and keys",
      check: async (bench) => {
        const run = await bench.running({ dedupKey: "k" });
        const next = await bench.add({ dedupKey: "k" });
        await bench.store.cancel({ id: next });
        const ids = [
          run.id,
          next,
          await bench.add({ dedupKey: "k" }),
          await bench.add({ dedupKey: "" }),
          await bench.add({ dedupKey: "K" }),
          await bench.add({ kind: "b", dedupKey: "k" }),
          await bench.add({}),
          await bench.add({}),
        ];
        equal(new Set(ids).size, ids.length);
      },
    },
    {
      name: "a duplicate inside one call merges with the earlier one",
      check: async (bench) => {
        const jobs = [1, 2, 3].map((n) => bench.job({ dedupKey: "k", payload: `${n}` }));
        const answers = (await bench.store.enqueue({ jobs })).jobs;
        const id = jobs[0]?.id;
        equal(answers, [
          { id, outcome: "enqueued" },
          { id, outcome: "replaced" },
          { id, outcome: "replaced" },
        ]);
        equal((await bench.find(answers[0]?.id ?? "")).payload, 3);
      },
    },
    {
      name: "the id of a job that was merged away is a repeat as well",
      check: async (bench) => {
        const id = await bench.add({ dedupKey: "k" });
        const merged = bench.job({ dedupKey: "k", payload: "2" });
        await bench.store.enqueue({ jobs: [merged] });
        equal((await bench.store.enqueue({ jobs: [merged] })).jobs, [{ id, outcome: "repeated" }]);
        equal(await bench.outcomes(id), ["merged"]);
        await failure(bench.store.enqueue({ jobs: [{ ...merged, dedupKey: "l" }] }), "id-conflict");
      },
    },
    {
      name: "fifty parallel enqueues of one key leave one pending job",
      check: async (bench) => {
        await Promise.all(Array.from({ length: 50 }, () => bench.enqueue({ dedupKey: "k" })));
        const [id, ...others] = await bench.query();
        equal(others, []);
        equal((await bench.outcomes(id ?? "")).length, 49);
      },
    },
    {
      name: "findCandidates gives the pending jobs of each key, first come first, with all that a merge function sees",
      check: async (bench) => {
        const run = await bench.running({ dedupKey: "k", payload: '{"n":1}', priority: "high" });
        await bench.settle(run, "paused", { carry: '{"page":3}', note: "later" });
        const second = await bench.add({ dedupKey: "k", merge: "independent" });
        const { candidates } = await bench.store.findCandidates({
          keys: [
            { kind: "a", dedupKey: "none" },
            { kind: "a", dedupKey: "k" },
            { kind: "unknown", dedupKey: "k" },
          ],
        });
        equal(
          candidates.map((some) => some.map(({ id }) => id)),
          [[], [run.id, second], []],
        );
        const [first] = candidates[1] ?? [];
        const { visibleAt } = await bench.find(run.id);
        equal(
          {
            ...first,
            payload: JSON.parse(first?.payload ?? ""),
            carry: JSON.parse(first?.carry ?? ""),
          },
          {
            id: run.id,
            version: 0,
            runCount: 1,
            failureCount: 0,
            priority: "high",
            visibleAt,
            payload: { n: 1 },
            carry: { page: 3 },
            journal: await bench.journal(run.id),
          },
        );
        equal(candidates[1]?.[1]?.carry, null);
        const keys = [{ kind: "a", dedupKey: "k", limit: 1 }];
        const limited = await bench.store.findCandidates({ keys });
        equal(
          limited.candidates[0]?.map(({ id }) => id),
          [run.id],
        );
      },
    },
    {
      name: "findCandidates tells which of the jobs to come are known, whatever has become of them",
      check: async (bench) => {
        const ended = await bench.running({ dedupKey: "k" });
        await bench.settle(ended, "completed");
        const pending = await bench.add({ dedupKey: "k" });
        const merged = bench.job({ dedupKey: "k" });
        await bench.store.enqueue({ jobs: [merged] });
        const ids = [bench.job({}).id, ended.id, merged.id, pending];
        const keys = [{ kind: "a", dedupKey: "k", ids }];
        const { known } = await bench.store.findCandidates({ keys });
        // Without transactions the error of an enqueue will do.
        if (known === undefined && !bench.store.capabilities.transactions) return;
        equal([...(known ?? [])].sort(), [ended.id, merged.id, pending].sort());
        const { known: none = [] } = await bench.store.findCandidates({
          keys: [{ kind: "a", dedupKey: "k" }],
        });
        equal(none, []);
      },
    },
    {
      name: "a decision is applied to the candidate that it is about",
      check: async (bench) => {
        await bench.add({ dedupKey: "k" });
        const second = await bench.add({ dedupKey: "k", merge: "independent", priority: "low" });
        const about = { candidate: second, version: 0, runCount: 0 };
        const visibleAt = Date.parse("2100-01-01T00:00:00Z");
        const change = { payload: "7", carry: '{"page":1}', visibleAt, priority: "high" } as const;
        const [answer] = await bench.enqueue({
          dedupKey: "k",
          leaseMs: 5_000,
          decision: { action: "with", ...about, ...change },
        });
        equal(answer, { id: second, outcome: "merged" });
        const job = await bench.find(second);
        equal(
          [job.payload, job.carry, job.visibleAt, job.priority],
          [7, { page: 1 }, new Date(visibleAt), "high"],
        );
        equal(
          (await bench.journal(second)).map(({ outcome, note }) => [outcome, note]),
          [["merged", "with"]],
        );
      },
    },
    {
      name: "with leaves carry, due time and priority where the decision does not name them",
      check: async (bench) => {
        const run = await bench.running({ dedupKey: "k", priority: "low" });
        await bench.settle(run, "paused", { carry: '{"page":3}', delayMs: 60_000 });
        const before = await bench.find(run.id);
        const about = { candidate: run.id, version: 0, runCount: 1 };
        await bench.enqueue({
          dedupKey: "k",
          priority: "high",
          decision: { action: "with", payload: "2", ...about },
        });
        equal(await bench.find(run.id), { ...before, payload: 2 });
      },
    },
    {
      name: "a carry of null is not the initial one",
      check: async (bench) => {
        const run = await bench.running({ dedupKey: "k" });
        equal(run.carry, null);
        await bench.settle(run, "paused", { carry: "null" });
        const keys = [{ kind: "a", dedupKey: "k" }];
        equal((await bench.store.findCandidates({ keys })).candidates[0]?.[0]?.carry, "null");
        equal((await bench.claim())[0]?.carry, "null");
      },
    },
    {
      name: "a decision's time that has passed means now",
      needs: ["clock"],
      check: async (bench) => {
        const id = await bench.add({ dedupKey: "k", delayMs: 60_000 });
        const about = { candidate: id, version: 0, runCount: 0 };
        await bench.enqueue({
          dedupKey: "k",
          decision: { action: "with", payload: "2", visibleAt: 0, ...about },
        });
        equal((await bench.find(id)).visibleAt?.getTime(), await bench.now());
        equal(await bench.claimedIds(), [id]);
      },
    },
    {
      name: "a decision about a candidate that has changed says so, retryable, and nothing is stored",
      check: async (bench) => {
        const id = await bench.add({ dedupKey: "k" });
        const stale = { candidate: id, version: 0, runCount: 0 };
        await bench.add({ dedupKey: "k" });
        const decisions = [
          { action: "keep", ...stale },
          { action: "replace", ...stale, version: 1, runCount: 1 },
          { action: "with", payload: "1", ...stale, candidate: bench.newId() },
          { action: "insert", skipped: [] },
        ] as const;
        for (const decision of decisions) {
          const other = bench.job();
          const jobs = [other, bench.job({ dedupKey: "k", decision })];
          equal((await failure(bench.store.enqueue({ jobs }), "merge")).isRetryable, true);
          equal(await bench.store.findJob({ id: other.id }), { job: null });
        }
        equal(await bench.outcomes(id), ["merged"]);
      },
    },
    {
      name: "what refuses a decision names the jobs that are repeats",
      check: async (bench) => {
        const known = bench.job();
        await bench.store.enqueue({ jobs: [known] });
        const about = { candidate: bench.newId(), version: 0, runCount: 0 };
        const decided = bench.job({ dedupKey: "k", decision: { action: "keep", ...about } });
        const { ids } = await failure(bench.store.enqueue({ jobs: [known, decided] }), "merge");
        equal(ids, [known.id]);
      },
    },
    {
      name: "insert passes over the candidates that could not be decoded, independent over all",
      check: async (bench) => {
        const skipped = await bench.add({ dedupKey: "k" });
        const [inserted] = await bench.enqueue({
          dedupKey: "k",
          decision: { action: "insert", skipped: [skipped] },
        });
        equal(inserted?.outcome, "enqueued");
        const [independent] = await bench.enqueue({
          dedupKey: "k",
          decision: { action: "independent" },
        });
        equal(independent?.outcome, "enqueued");
      },
    },
    {
      name: "decisions of one call follow one another",
      check: async (bench) => {
        const id = await bench.add({ dedupKey: "k", payload: "1" });
        const about = { candidate: id, runCount: 0 };
        const answers = await bench.enqueue(
          { dedupKey: "k", decision: { action: "with", payload: "3", ...about, version: 0 } },
          { dedupKey: "k", decision: { action: "with", payload: "6", ...about, version: 1 } },
        );
        equal(
          answers.map(({ outcome }) => outcome),
          ["merged", "merged"],
        );
        equal((await bench.find(id)).payload, 6);
      },
    },
    {
      name: "a scheduled job that a merge makes due arrives now",
      needs: ["clock"],
      check: async (bench) => {
        const merged = await bench.add({ dedupKey: "k", delayMs: 60_000 });
        const between = await bench.add();
        await bench.add({ dedupKey: "k" });
        equal(await bench.claimedIds(), [between, merged]);
      },
    },
  ],
};
