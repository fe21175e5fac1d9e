import { EventEmitter, once } from "node:events";
import { defineTask, type JobId } from "@venturi/core";
import { PostgresStore } from "@venturi/store-postgres";
import type pg from "pg";
import * as v from "valibot";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { Queue } from "./queue.ts";
import { add, mergeFixture, taskThat } from "./testing/merge-fixture.ts";

const { pool, operator, claim, payloads } = await mergeFixture();

describe("a race", () => {
  /** An addition of another process: those of this one take turns. */
  const addElsewhere = () =>
    pool.query(`with body as (
        update venturi_jobs set version = coalesce(version, 0) + 1,
          payload = jsonb_set(payload, '{n}', to_jsonb((payload ->> 'n')::int + 1)) returning id)
      update venturi_queue q set version = q.version + 1 from body where q.job_id = body.id`);

  /** A queue to which something happens between reading and deciding, a number of times. */
  function interrupted(happening: () => Promise<unknown>, times = 1): Queue {
    let left = times;
    return new Queue({
      query: async (text, params) => {
        const result = await pool.query(text, params);
        if (text.includes("merge_candidates") && left > 0) {
          left -= 1;
          await happening();
        }
        return result;
      },
    });
  }

  it("with a claim: the job is inserted as new, with the initial carry", async () => {
    const id = await operator.enqueue(add(1));
    await claim("add", "paused", { carry: '{"page":4}' });
    let held: Awaited<ReturnType<typeof claim>> | undefined;
    const queue = interrupted(async () => {
      held = await claim("add");
    });
    const fresh = await queue.enqueue(add(2));
    expect(fresh).not.toBe(id);
    expect(await operator.job(fresh)).toMatchObject({ payload: { n: 2 }, carry: null });
    await held?.settle("completed");
  });

  it("with a run that came and went: the decision is made anew", async () => {
    const id = await operator.enqueue(add(1));
    const queue = interrupted(() => claim("add", "paused", { carry: '{"page":4}' }));
    expect(await queue.enqueue(add(2))).toBe(id);
    expect(await operator.job(id)).toMatchObject({ payload: { n: 3 }, carry: { page: 4 } });
  });

  it("with another merge, many times over, loses nothing", async () => {
    const id = await operator.enqueue(add(1));
    const queue = interrupted(addElsewhere, 5);
    expect(await queue.enqueue(add(10))).toBe(id);
    expect(await operator.job(id)).toMatchObject({ payload: { n: 16 } });
  });

  it("with the first insert of the key leaves one job", async () => {
    const queue = interrupted(() => operator.enqueue(add(1)));
    await queue.enqueue(add(2));
    expect(await payloads()).toEqual([3]);
  });

  it("that never ends is a retryable merge after ten seconds", async () => {
    await operator.enqueue(add(1));
    // Nothing but the clock that the ten seconds are counted on: the database and the delays are real.
    vi.useFakeTimers({ toFake: ["performance"] });
    onTestFinished(() => void vi.useRealTimers());
    const queue = interrupted(async () => {
      await addElsewhere();
      vi.advanceTimersByTime(2_000);
    }, Number.POSITIVE_INFINITY);
    const startedAt = performance.now();
    const error = { code: "merge", isRetryable: true, sqlState: "VT003" };
    await expect(queue.enqueue(add(2))).rejects.toMatchObject(error);
    const tookMs = performance.now() - startedAt;
    expect(tookMs).toBeGreaterThan(8_000);
    expect(tookMs).toBeLessThan(11_000);
  });

  it("does not hold up jobs that have nothing to merge", async () => {
    await operator.enqueue(add(1));
    const gate = new EventEmitter();
    const Plain = defineTask({ kind: "plain", payload: v.number() });
    const held = once(gate, "open");
    const reading = once(gate, "reading");
    // A store whose candidates take their time.
    const slow = new PostgresStore({ pool });
    const queue = new Queue({
      ...{ portVersion: slow.portVersion, capabilities: slow.capabilities },
      enqueue: (request: Parameters<typeof slow.enqueue>[0]) => slow.enqueue(request),
      findCandidates: async (request: Parameters<typeof slow.findCandidates>[0]) => {
        gate.emit("reading");
        await held;
        return slow.findCandidates(request);
      },
    });
    const merging = queue.enqueue(add(1));
    await reading;
    await queue.enqueue(Plain(1));
    gate.emit("open");
    await merging;
  });
});

describe("within a transaction", () => {
  async function transaction<T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    const client = await pool.connect();
    try {
      await client.query("begin");
      return await work(client);
    } finally {
      await client.query("rollback");
      client.release();
    }
  }

  it("a merge is seen when it commits, and never was when it rolls back", async () => {
    const queue = new Queue(pool);
    const id = await queue.enqueue(add(1));
    for (const [end, n] of [
      ["rollback", 1],
      ["commit", 6],
    ] as const) {
      await transaction(async (client) => {
        const within = queue.within(client);
        expect(await within.enqueue(add(2))).toBe(id);
        expect(await within.enqueueMany([add(1), add(2)])).toEqual([id, id]);
        expect(await payloads()).toEqual([1]);
        await client.query(end);
      });
      expect(await payloads()).toEqual([n]);
    }
  });

  describe("a known job and a new one of its key go together, where the known one", () => {
    const [id, later] = ["01ARZ3NDEKTSV4RRFFQ69G5FAV", "01ARZ3NDEKTSV4RRFFQ69G5FAW"] as const;

    async function storeTogether(known: JobId): Promise<readonly JobId[]> {
      return transaction(async (client) => {
        const within = new Queue(pool).within(client);
        const stored = await within.enqueueMany([{ job: add(1), id: known }, add(10), add(20)]);
        await client.query("commit");
        return stored;
      });
    }

    it("is pending", async () => {
      await operator.enqueue(add(1), { id });
      expect(await storeTogether(id)).toEqual([id, id, id]);
      expect(await payloads()).toEqual([31]);
    });

    it.each(["running", "completed"])("is %s", async (state) => {
      await operator.enqueue(add(1), { id });
      const held = await claim("add");
      if (state === "completed") await held.settle("completed");
      const [first, second, third] = await storeTogether(id);
      expect([first, third]).toEqual([id, second]);
      expect(second).not.toBe(id);
      expect((await payloads()).sort()).toEqual([1, 30]);
    });

    it("was merged into one that has ended", async () => {
      await operator.enqueue(add(1), { id });
      await operator.enqueue(add(2), { id: later });
      await claim("add", "completed");
      const [first, second, third] = await storeTogether(later);
      expect([first, third]).toEqual([id, second]);
      expect((await payloads()).sort()).toEqual([3, 30]);
    });
  });

  it.each(["read committed", "repeatable read", "serializable"])(
    "a race is not repeated but retryable, at %s",
    async (level) => {
      const id = await operator.enqueue(add(1));
      await transaction(async (client) => {
        await client.query(`set transaction isolation level ${level}`);
        let calls = 0;
        const queue = new Queue(pool).within({
          query: async (text, params) => {
            const result = await client.query(text, params);
            if (text.includes("merge_candidates")) {
              calls += 1;
              await operator.enqueue(add(1));
            }
            return result;
          },
        });
        await expect(queue.enqueue(add(2))).rejects.toMatchObject({ isRetryable: true });
        expect(calls).toBe(1);
      });
      expect(await operator.job(id)).toMatchObject({ payload: { n: 2 } });
    },
  );

  it("a merge function that throws leaves the transaction as it was", async () => {
    const Bad = taskThat(() => {
      throw new Error("no");
    });
    await operator.enqueue(add(1));
    await transaction(async (client) => {
      const within = operator.within(client);
      await expect(within.enqueue(Bad({ key: "a", n: 1 }))).rejects.toMatchObject({
        code: "merge",
      });
      await within.enqueue(add(2));
      await client.query("commit");
    });
    expect(await payloads()).toEqual([3]);
  });
});
