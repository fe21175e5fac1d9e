import type { EnqueuedJob, EnqueueJob } from "@venturi/core";
import { describe, expect, it } from "vitest";
import { EnqueueLane, type LanePolicy, MAX_STATEMENT_JOBS } from "./enqueue-lane.ts";

/** A statement that the test ends when it likes. */
interface Sent {
  readonly ids: readonly string[];
  readonly succeed: () => void;
  readonly fail: (error: unknown) => void;
}

function lane(policy: Partial<LanePolicy> = {}) {
  const sent: Sent[] = [];
  const settled: string[] = [];
  const send = (jobs: readonly EnqueueJob[]) =>
    new Promise<readonly EnqueuedJob[]>((resolve, reject) => {
      const ids = jobs.map(({ id }) => id);
      const stored = ids.map((id) => ({ id, outcome: "enqueued" as const }));
      sent.push({ ids, succeed: () => resolve(stored), fail: reject });
    });
  const it = new EnqueueLane({ send, coalesces: () => true, isolates: () => true, ...policy });
  const abandoned = new Set<string>();
  const add = (ids: readonly string[], payload = "1") => {
    const jobs = ids.map((id): EnqueueJob => ({ id, kind: "k", payload, priority: "normal" }));
    const name = ids.join("+");
    it.add({
      jobs,
      resolve: (stored) => settled.push(`${name} → ${stored.map(({ id }) => id).join("+")}`),
      reject: (error) => settled.push(`${name} × ${String(error)}`),
      isAbandoned: () => abandoned.has(name),
    });
  };
  return { add, sent, settled, abandoned };
}

/** Lets everything that is ready run. */
const turn = () => new Promise((resolve) => setImmediate(resolve));

describe("enqueues that happen together", () => {
  it("share one statement when they come in one turn", async () => {
    const { add, sent, settled } = lane();
    add(["a"]);
    add(["b", "c"]);
    await turn();
    expect(sent.map(({ ids }) => ids)).toEqual([["a", "b", "c"]]);
    sent[0]?.succeed();
    await turn();
    expect(settled).toEqual(["a → a", "b+c → b+c"]);
  });

  it("pile up behind the statement in flight and go together with the next", async () => {
    const { add, sent } = lane();
    add(["a"]);
    await turn();
    add(["b"]);
    await turn();
    add(["c"]);
    await turn();
    expect(sent).toHaveLength(1);
    sent[0]?.succeed();
    await turn();
    expect(sent[1]?.ids).toEqual(["b", "c"]);
  });

  it("are cut at 1,000 jobs a statement", async () => {
    const { add, sent } = lane();
    for (let index = 0; index < MAX_STATEMENT_JOBS + 1; index += 1) add([String(index)]);
    await turn();
    expect(sent[0]?.ids).toHaveLength(MAX_STATEMENT_JOBS);
    sent[0]?.succeed();
    await turn();
    expect(sent[1]?.ids).toEqual([String(MAX_STATEMENT_JOBS)]);
  });

  it("are cut at a megabyte a statement, and what is larger goes alone", async () => {
    const { add, sent } = lane();
    add(["a"], "x".repeat(600_000));
    add(["b"], "x".repeat(600_000));
    add(["c"], "x".repeat(3_000_000));
    add(["d"]);
    for (const ids of [["a"], ["b"], ["c"], ["d"]]) {
      await turn();
      expect(sent.at(-1)?.ids).toEqual(ids);
      sent.at(-1)?.succeed();
    }
  });

  it("go one by one where they must not be coalesced", async () => {
    const { add, sent } = lane({ coalesces: () => false });
    add(["a"]);
    add(["b"]);
    await turn();
    expect(sent.map(({ ids }) => ids)).toEqual([["a"]]);
    sent[0]?.fail(new Error("no"));
    await turn();
    expect(sent[1]?.ids).toEqual(["b"]);
  });

  it("are left out when their caller stopped waiting before they were sent", async () => {
    const { add, sent, abandoned } = lane();
    add(["a"]);
    await turn();
    add(["b"]);
    add(["c"]);
    abandoned.add("b");
    sent[0]?.succeed();
    await turn();
    expect(sent[1]?.ids).toEqual(["c"]);
  });
});

describe("one bad job", () => {
  /** Answers every statement at once: it fails while a bad id is in it. */
  async function run(bad: string, groups: readonly (readonly string[])[]) {
    const { add, sent, settled } = lane();
    for (const ids of groups) add(ids);
    for (let done = 0; done < 100; done += 1) {
      await turn();
      const statement = sent[done];
      if (statement === undefined) return { sent, settled };
      if (statement.ids.includes(bad)) statement.fail("bad");
      else statement.succeed();
    }
    throw new Error("did not end");
  }

  it("fails alone, and the others are stored in the order they came in", async () => {
    const ids = Array.from({ length: 64 }, (_, index) => [`j${index}`]);
    const { sent, settled } = await run("j37", ids);
    expect(settled).toEqual(ids.map(([id]) => (id === "j37" ? "j37 × bad" : `${id} → ${id}`)));
    // One statement for all, then two for each halving.
    expect(sent.length).toBeLessThanOrEqual(1 + 2 * Math.log2(64));
  });

  it("fails the whole of the call that it came in with, and no other", async () => {
    const { settled } = await run("b", [["a"], ["b", "c"], ["d"]]);
    expect(settled).toEqual(["a → a", "b+c × bad", "d → d"]);
  });

  it("is not looked for when the failure is everybody's", async () => {
    const { add, sent, settled } = lane({ isolates: () => false });
    add(["a"]);
    add(["b"]);
    await turn();
    sent[0]?.fail("down");
    await turn();
    expect(sent).toHaveLength(1);
    expect(settled).toEqual(["a × down", "b × down"]);
  });
});
