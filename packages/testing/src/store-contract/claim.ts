import type { Priority } from "@venturi/core";
import { type Bench, equal, holds, type Topic } from "./bench.ts";

export const claimTopic: Topic = {
  topic: "claim",
  checks: [
    {
      name: "a claim brings what the handler needs, and holds it for its lease",
      check: async (bench) => {
        const id = await bench.add({ payload: '{"n":1}', priority: "high", headers: { h: "1" } });
        const worker = await bench.worker({ name: "w1" });
        const job = await bench.claimOne(worker, { kinds: [{ kind: "a", leaseMs: 60_000 }] });
        const { id: jobId, kind, priority, carry, runCount, failureCount, leaseMs } = job;
        equal(
          { jobId, kind, priority, carry, runCount, failureCount, leaseMs },
          {
            jobId: id,
            kind: "a",
            priority: "high",
            carry: null,
            runCount: 1,
            failureCount: 0,
            leaseMs: 60_000,
          },
        );
        equal([JSON.parse(job.payload), job.headers], [{ n: 1 }, { h: "1" }]);
        const record = await bench.find(id);
        equal(
          [record.status, record.claimedBy, record.runCount, record.leaseExpiresAt],
          ["claimed", "w1", 1, job.leaseExpiresAt],
        );
      },
    },
    {
      name: "a claimed job is nobody else's",
      check: async (bench) => {
        const ids = [await bench.add(), await bench.add()];
        equal(await bench.claimedIds(), ids);
        equal(await bench.claimedIds(), []);
      },
    },
    {
      name: "claimers at once share out the jobs: each goes to one of them",
      check: async (bench) => {
        const enqueued = await bench.enqueue(...Array.from({ length: 60 }, () => ({})));
        const workers = await Promise.all([1, 2, 3, 4].map(() => bench.worker()));
        const shares: string[] = [];
        for (let round = 0; shares.length < 60; round += 1) {
          holds(round < 20, "every job is had by somebody");
          const claims = workers.map((worker) => bench.claimFor(worker, { limit: 6 }));
          for (const { jobs } of await Promise.all(claims))
            shares.push(...jobs.map(({ id }) => id));
        }
        equal(shares.sort(), enqueued.map(({ id }) => id).sort());
      },
    },
    {
      name: "an empty claim changes nothing",
      check: async (bench) => {
        const worker = await bench.worker();
        equal(await bench.claimFor(worker), { jobs: [], waitMs: null, blocked: false });
        equal((await bench.store.stats({})).stats.claimed, 0);
      },
    },
    {
      name: "jobs come by priority, then by arrival",
      check: async (bench) => {
        const ids = [];
        for (const priority of ["low", "normal", "high", "normal", "high"] as const)
          ids.push(await bench.add({ priority }));
        const [low, normal, high, normal2, high2] = ids;
        equal(await bench.claimedIds(), [high, high2, normal, normal2, low]);
      },
    },
    {
      name: "arrival is the order of the calls, whatever the ids",
      check: async (bench) => {
        const [early, late] = [bench.newId(), bench.newId()];
        await bench.add({ id: late });
        await bench.add({ id: early });
        equal(await bench.claimedIds(), [late, early]);
      },
    },
    {
      name: "a claim takes no more than its limit",
      check: async (bench) => {
        for (let n = 0; n < 5; n += 1) await bench.add();
        equal((await bench.claim({ limit: 3 })).length, 3);
        equal((await bench.claim({ limit: 3 })).length, 2);
      },
    },
    {
      name: "a claim takes no kind that it was not asked for",
      check: async (bench) => {
        await bench.add({ kind: "b" });
        const id = await bench.add();
        equal(await bench.claimedIds(), [id]);
      },
    },
    {
      name: "the room of a kind bounds a batch too, and what it leaves goes to the others",
      check: async (bench) => {
        for (const kind of ["a", "a", "a", "b", "b"]) await bench.add({ kind });
        const jobs = await bench.claim({ limit: 4, kinds: [{ kind: "a", limit: 1 }, "b"] });
        equal(
          jobs.map(({ kind }) => kind),
          ["a", "b", "b"],
        );
      },
    },
    {
      name: "excluded jobs stay pending",
      check: async (bench) => {
        const [first, second] = [await bench.add(), await bench.add()];
        equal(await bench.claimedIds({ exclude: [first], limit: 1 }), [second]);
        equal((await bench.find(first)).status, "pending");
      },
    },
    {
      name: "a hint brings the job that it names, and what it leaves is brought by the next claim",
      check: async (bench) => {
        const worker = await bench.worker();
        equal(await bench.idsFor(worker), []);
        const [before, hint, after] = [await bench.add(), await bench.add(), await bench.add()];
        const brought = await bench.idsFor(worker, { hint });
        holds(brought.includes(hint), "the named job is brought");
        const rest = await bench.idsFor(worker);
        equal([...brought, ...rest].sort(), [before, hint, after].sort());
      },
    },
    {
      name: "a hint brings no job that cannot be claimed",
      check: async (bench) => {
        const worker = await bench.worker();
        const claimed = await bench.running();
        const later = await bench.add({ delayMs: 60_000 });
        const foreign = await bench.add({ kind: "foreign" });
        const excluded = await bench.add();
        const exclude = [excluded];
        equal(await bench.idsFor(worker, { exclude }), []);
        for (const hint of [claimed.id, later, foreign, excluded, bench.newId()])
          equal(await bench.idsFor(worker, { exclude, hint }), []);
      },
    },
    {
      name: "a batch takes exactly the jobs that single claims in a row would take",
      check: async (bench) => {
        for (const ratio of [null, 2, 3, 4]) {
          const batch = await fill(bench, `batch${ratio}`);
          const single = await fill(bench, `single${ratio}`);
          const turn = { counter: 3, ratio };
          const jobs = await bench.claim({ kinds: [batch], limit: 8, turn });
          const alone: Priority[] = [];
          for (let n = 0; n < 8; n += 1) {
            const next = { counter: 3 + n, ratio };
            const [job] = await bench.claim({ kinds: [single], limit: 1, turn: next });
            if (job !== undefined) alone.push(job.priority);
          }
          equal(jobs.map(({ priority }) => priority).sort(), alone.sort());
        }
      },
    },
    {
      name: "ratio 4: of sixteen turns twelve are anyone's, three Normal's and one Low's",
      check: async (bench) => {
        const priorities = ["high", "normal", "low"] as const;
        await bench.enqueue(
          ...priorities.flatMap((priority) => Array.from({ length: 16 }, () => ({ priority }))),
        );
        const jobs = await bench.claim({ limit: 16, turn: { counter: 0, ratio: 4 } });
        const count = (tier: Priority) => jobs.filter(({ priority }) => priority === tier).length;
        equal(priorities.map(count), [12, 3, 1]);
      },
    },
    {
      name: "a turn whose tiers are empty goes to the others",
      check: async (bench) => {
        await bench.enqueue({ priority: "high" }, { priority: "high" }, { priority: "high" });
        equal((await bench.claim({ limit: 3, turn: { counter: 14, ratio: 4 } })).length, 3);
      },
    },
    {
      name: "the job's own lease goes before the claim's",
      check: async (bench) => {
        const run = await bench.running({ leaseMs: 5_000 });
        equal(run.leaseMs, 5_000);
      },
    },
    {
      name: "the lease is counted by the store's clock",
      needs: ["clock"],
      check: async (bench) => {
        await bench.advance(1_000);
        const run = await bench.running({}, { kinds: [{ kind: "a", leaseMs: 60_000 }] });
        equal(run.leaseExpiresAt.getTime(), (await bench.now()) + 60_000);
      },
    },
    {
      name: "jobs of a paused kind stay pending",
      needs: ["pauseKind"],
      check: async (bench) => {
        await bench.add({ kind: "b" });
        const id = await bench.add();
        await bench.pauseKind("b");
        equal(await bench.claimedIds({ kinds: ["a", "b"] }), [id]);
      },
    },
    {
      name: "a delayed job is claimed when it is due and not before; a short claim says how long to wait",
      needs: ["clock"],
      check: async (bench) => {
        const id = await bench.add({ delayMs: 60_000 });
        await bench.add({ kind: "b", delayMs: 1_000 });
        await bench.advance(59_999);
        equal(await bench.claimFor(await bench.worker()), { jobs: [], waitMs: 1, blocked: false });
        await bench.advance(1);
        equal(await bench.claimedIds(), [id]);
      },
    },
    {
      name: "latency is the time since the job was due",
      needs: ["clock"],
      check: async (bench) => {
        await bench.add({ delayMs: 1_000 });
        await bench.advance(1_500);
        equal((await bench.claim())[0]?.latencyMs, 500);
      },
    },
    {
      name: "a job that was not due arrives when it is found due, by priority and then by due time",
      needs: ["clock"],
      check: async (bench) => {
        const late = await bench.add({ delayMs: 2_000 });
        const soon = await bench.add({ delayMs: 1_000 });
        const high = await bench.add({ delayMs: 3_000, priority: "high" });
        await bench.advance(3_000);
        const ready = await bench.add();
        equal(await bench.claimedIds(), [high, ready, soon, late]);
      },
    },
  ],
};

/** Jobs of all priorities, of a kind of their own. */
async function fill(bench: Bench, kind: string): Promise<string> {
  const line: Priority[] = ["low", "high", "normal", "high", "low", "normal", "high", "high"];
  await bench.enqueue(...[...line, ...line].map((priority) => ({ kind, priority })));
  return kind;
}
