import { type SettleVerdict, toDatabaseError, VenturiError } from "@venturi/core";
import { beforeEach, describe, expect, test } from "vitest";
import { ManualClock } from "./testing/manual-clock.ts";
import { type LogRecord, recordingLogger } from "./testing/recording-logger.ts";
import { type Deferred, deferred } from "./testing/signals.ts";
import { Trouble } from "./trouble.ts";
import { type ClaimWrite, VerdictQueue } from "./verdict-queue.ts";

interface Item extends ClaimWrite {
  readonly name: string;
}

interface Sent {
  readonly names: readonly string[];
  readonly answer: Deferred<readonly SettleVerdict[]>;
}

const outage = () => new VenturiError("database", "connection lost", { isRetryable: true });
const refusal = () => new VenturiError("database", "value too long", { sqlState: "22001" });

let clock: ManualClock;
let sent: Sent[];
let events: string[];
/** How often it was told that a statement has returned. */
let progress: number;
let queue: VerdictQueue<Item>;
let records: LogRecord[];
/** Answers statements at once; null: a test answers them by hand. */
let answer: ((names: readonly string[]) => readonly SettleVerdict[]) | null;

beforeEach(() => {
  clock = new ManualClock();
  sent = [];
  events = [];
  progress = 0;
  answer = (names) => names.map(() => "applied");
  const recording = recordingLogger();
  const { logger } = recording;
  records = recording.records;
  queue = new VerdictQueue<Item>({
    clock,
    trouble: new Trouble({ clock, logger, doing: "write", random: () => 0 }),
    send: async (batch) => {
      const statement = {
        names: batch.map(({ name }) => name),
        answer: deferred<readonly SettleVerdict[]>(),
      };
      sent.push(statement);
      return answer === null ? statement.answer.promise : answer(statement.names);
    },
    onVerdict: ({ name }, verdict) => events.push(`${name} ${verdict}`),
    onRefused: (item) => {
      events.push(`${item.name} refused`);
      if (item.name.startsWith("z")) return "drop";
      return item.name.endsWith("!") ? "again" : { ...item, name: `${item.name}!` };
    },
    onDropped: ({ name }) => events.push(`${name} dropped`),
    onProgress: () => {
      progress += 1;
    },
  });
});

function add(name: string, { leaseMs = 60_000, textLength = 0 } = {}): void {
  queue.add({ name, textLength, until: clock.now() + leaseMs, tries: 0 });
}

const warnings = () => records.filter(({ level }) => level === "warn");
const batches = () => sent.map(({ names }) => names.join(""));

describe("batches form by themselves", () => {
  test("an idle queue sends on the next turn what this turn has brought", async () => {
    for (const name of ["a", "b"]) add(name);
    expect(sent).toEqual([]);
    await clock.settle();
    expect(batches()).toEqual(["ab"]);
    expect(events).toEqual(["a applied", "b applied"]);
  });

  test("while a statement is in flight the rest piles up, and the next takes all of it", async () => {
    answer = null;
    add("a");
    await clock.settle();
    for (const name of ["b", "c"]) {
      add(name);
      await clock.settle();
    }
    expect(batches()).toEqual(["a"]);
    sent[0]?.answer.resolve(["applied"]);
    await clock.settle();
    expect(batches()).toEqual(["a", "bc"]);
  });

  test("a statement takes at most a thousand items, and about a megabyte of text", async () => {
    for (let i = 0; i < 2_500; i += 1) add("x");
    await clock.settle();
    expect(sent.map(({ names }) => names.length)).toEqual([1_000, 1_000, 500]);
    sent = [];
    for (const name of ["a", "b", "c"]) add(name, { textLength: 600_000 });
    await clock.settle();
    expect(batches()).toEqual(["a", "b", "c"]);
    sent = [];
    for (const name of ["a", "b", "c"]) add(name, { textLength: 500_000 });
    await clock.settle();
    expect(batches()).toEqual(["ab", "c"]);
  });

  test("an item with more text than a statement takes goes by itself", async () => {
    for (const name of ["a", "b", "c"]) add(name, { textLength: name === "b" ? 2_000_000 : 10 });
    await clock.settle();
    expect(batches()).toEqual(["a", "b", "c"]);
  });

  test("it is told of each statement that has returned, so that more may be claimed", async () => {
    answer = null;
    add("a");
    await clock.settle();
    expect(progress).toBe(0);
    add("b");
    sent[0]?.answer.resolve(["applied"]);
    await clock.settle();
    expect(progress).toBe(1);
    sent[1]?.answer.resolve(["applied"]);
    await clock.settle();
    expect(progress).toBe(2);
  });

  test("nothing is left once every item has its verdict, and not before", async () => {
    answer = null;
    add("a");
    await clock.settle();
    add("b");
    let isEmpty = false;
    void queue.empty().then(() => {
      isEmpty = true;
    });
    sent[0]?.answer.resolve(["applied"]);
    await clock.settle();
    expect(isEmpty).toBe(false);
    sent[1]?.answer.resolve(["applied"]);
    await clock.settle();
    expect(isEmpty).toBe(true);
  });
});

describe("verdicts", () => {
  test("done is as good as applied, lost is told, and both are over", async () => {
    answer = () => ["done", "lost"];
    for (const name of ["a", "b"]) add(name);
    await clock.settle();
    expect(events).toEqual(["a done", "b lost"]);
    await expect(queue.empty()).resolves.toBeUndefined();
    expect(clock.pending).toBe(0);
  });

  test("busy is tried again after 20 ms, doubling, without holding up the others", async () => {
    answer = (names) => names.map((name) => (name === "a" ? "busy" : "applied"));
    add("a");
    await clock.settle();
    add("b");
    await clock.settle();
    expect(batches()).toEqual(["a", "b"]);
    await clock.advance(20);
    expect(batches()).toEqual(["a", "b", "a"]);
    await clock.advance(39);
    expect(sent).toHaveLength(3);
    await clock.advance(1);
    expect(sent).toHaveLength(4);
    answer = () => ["applied"];
    await clock.advance(80);
    expect(events).toEqual(["b applied", "a applied"]);
  });

  test("each is tried again at a moment of its own, whatever comes of the others", async () => {
    const tries = new Map<string, number>();
    answer = (names) =>
      names.map((name) => {
        tries.set(name, (tries.get(name) ?? 0) + 1);
        return tries.get(name) === 1 ? "busy" : "applied";
      });
    add("a");
    await clock.advance(10);
    add("b");
    await clock.advance(10);
    expect(events).toEqual(["a applied"]);
    await clock.advance(10);
    expect(events).toEqual(["a applied", "b applied"]);
  });

  test("what stays busy is tried once a second in the end", async () => {
    answer = () => ["busy"];
    add("a", { leaseMs: 600_000 });
    await clock.advance(20 + 40 + 80 + 160 + 320 + 640);
    const before = sent.length;
    await clock.advance(10_000);
    expect(sent.length - before).toBe(10);
  });

  test("what stays busy until its lease ends is dropped", async () => {
    answer = () => ["busy"];
    add("a", { leaseMs: 5_000 });
    await clock.advance(7_000);
    expect(events).toEqual(["a dropped"]);
    expect(queue.size).toBe(0);
    expect(clock.pending).toBe(0);
  });
});

describe("when the database fails", () => {
  test("everything is tried again with growing delays, and nothing is lost or doubled", async () => {
    answer = () => {
      throw outage();
    };
    add("a");
    await clock.settle();
    add("b");
    await clock.advance(249);
    expect(batches()).toEqual(["a"]);
    await clock.advance(1);
    expect(batches()).toEqual(["a", "ab"]);
    await clock.advance(499);
    expect(sent).toHaveLength(2);
    answer = (names) => names.map(() => "applied");
    await clock.advance(1);
    expect(batches()).toEqual(["a", "ab", "ab"]);
    expect(events).toEqual(["a applied", "b applied"]);
    answer = () => {
      throw outage();
    };
    add("c");
    await clock.advance(250);
    expect(batches().slice(3)).toEqual(["c", "c"]);
  });

  test("an item is given up when its lease has ended, the others are not", async () => {
    answer = () => {
      throw outage();
    };
    add("a", { leaseMs: 500 });
    add("b");
    await clock.advance(3_000);
    expect(events).toEqual(["a dropped"]);
    answer = () => ["applied"];
    await clock.advance(4_000);
    expect(events).toEqual(["a dropped", "b applied"]);
  });

  test("an item whose lease has ended already is tried once all the same", async () => {
    add("a", { leaseMs: -1 });
    await clock.settle();
    expect(events).toEqual(["a applied"]);
  });
});

describe("when the store refuses", () => {
  test("the batch is split down to the culprit, which alone is replaced", async () => {
    answer = (names) => {
      if (names.includes("c")) throw refusal();
      return names.map(() => "applied");
    };
    for (const name of ["a", "b", "c", "d", "e", "f", "g", "h"]) add(name);
    await clock.settle();
    expect(events.sort()).toEqual(
      [
        "c refused",
        ...["a", "b", "c!", "d", "e", "f", "g", "h"].map((name) => `${name} applied`),
      ].sort(),
    );
    expect(sent.length).toBeLessThanOrEqual(8);
  });

  test("a replacement that is refused as well is tried until the lease ends, without holding up the others", async () => {
    answer = (names) => {
      if (names.some((name) => name.startsWith("a"))) throw refusal();
      return names.map(() => "applied");
    };
    add("a", { leaseMs: 3_000 });
    add("b");
    await clock.advance(10_000);
    expect(events).toContain("b applied");
    expect(events.at(-1)).toBe("a! dropped");
    expect(sent.length).toBeLessThan(20);
  });

  test("what stays refused is tried every half minute in the end", async () => {
    answer = () => {
      throw refusal();
    };
    add("a", { leaseMs: 3_600_000 });
    await clock.advance(120_000);
    const before = sent.length;
    await clock.advance(300_000);
    expect(sent.length - before).toBe(10);
  });

  test("an item that is to be dropped then is over, and the others are written", async () => {
    answer = (names) => {
      if (names.includes("z")) throw refusal();
      return names.map(() => "applied");
    };
    for (const name of ["a", "z"]) add(name);
    await clock.settle();
    expect(events).toEqual(["a applied", "z refused"]);
    expect(queue.size).toBe(0);
    expect(clock.pending).toBe(0);
  });

  test("an outage in the middle of splitting loses nothing", async () => {
    let calls = 0;
    answer = (names) => {
      calls += 1;
      if (calls === 1) throw refusal();
      if (calls === 2) throw outage();
      return names.map(() => "applied");
    };
    for (const name of ["a", "b", "c"]) add(name);
    await clock.settle();
    expect(batches()).toEqual(["abc", "ab"]);
    await clock.advance(1_000);
    expect(events.sort()).toEqual(["a applied", "b applied", "c applied"]);
  });
});

test("an outage in the middle of splitting leaves it open whether all would have failed alike", async () => {
  const refuses = () => new VenturiError("database", "not now", { sqlState: "P0001" });
  answer = (names) => {
    if (names.join("") === "b") throw outage();
    throw refuses();
  };
  for (const name of ["a", "b", "c"]) add(name);
  await clock.settle();
  expect(batches()).toEqual(["abc", "ab", "a", "b"]);
  answer = (names) => names.map(() => "applied");
  await clock.advance(250);
  expect(events.sort()).toEqual(["a applied", "b applied", "c applied"]);
});

describe("an error that all items meet alike", () => {
  const everything = (error: () => unknown) => {
    answer = () => {
      throw error();
    };
  };
  test("is the same however many items a store says that it was writing", async () => {
    answer = (names) => {
      const cause = Object.assign(new Error("not now"), { code: "P0001" });
      throw toDatabaseError(cause, { doing: `settle ${names.length} runs`, prefix: "venturi" });
    };
    for (let n = 0; n < 500; n += 1) add("a", { leaseMs: 600_000 });
    await clock.advance(29_000);
    const before = sent.length;
    expect(before).toBeLessThan(30);
    for (let n = 0; n < 20; n += 1) {
      add("b", { leaseMs: 600_000 });
      await clock.advance(29_000);
    }
    // Once every half minute, when it is split to see whether all fail alike, and one every four seconds.
    expect(sent.length - before).toBeLessThan(20 * 20);
    expect(warnings().length).toBeLessThanOrEqual(11);
  });

  const kinds: [string, () => unknown][] = [
    ["a missing right", () => new VenturiError("database", "denied", { sqlState: "42501" })],
    ["a trigger", () => new VenturiError("database", "not now", { sqlState: "P0001" })],
    ["no answer", () => new Error("no connection")],
  ];

  test.each(kinds)(
    "%s: is trouble, which costs few statements and one record",
    async (_, error) => {
      everything(error);
      for (let n = 0; n < 500; n += 1) add("a", { leaseMs: 600_000 });
      await clock.advance(59_000);
      expect(sent.length).toBeLessThan(60);
      expect(events).toEqual([]);
      expect(warnings()).toHaveLength(1);
      answer = (names) => names.map(() => "applied");
      await clock.advance(4_000);
      expect(events).toEqual(Array(500).fill("a applied"));
    },
  );

  test.each(kinds)("%s: does not hold up for long what would pass", async (_, error) => {
    answer = (names) => {
      if (names.includes("a")) throw error();
      return names.map(() => "applied");
    };
    for (const name of ["a", "a", "a", "a", "b"]) add(name, { leaseMs: 600_000 });
    await clock.advance(1_000);
    expect(events).toContain("b applied");
  });

  test.each(kinds)(
    "%s: is over soon for the others, where the newest fails for good",
    async (_, error) => {
      everything(error);
      for (const name of ["b", "c", "a"]) add(name, { leaseMs: 600_000 });
      await clock.advance(2_000);
      expect(events).toEqual([]);
      answer = (names) => {
        if (names.includes("a")) throw error();
        return names.map(() => "applied");
      };
      await clock.advance(10_000);
      expect(events).toEqual(expect.arrayContaining(["b applied", "c applied"]));
      answer = (names) => names.map(() => "applied");
      await clock.advance(31_000);
      expect(queue.size).toBe(0);
    },
  );

  describe.each([2, 3, 10, 50])("%s that fail for good", (failing) => {
    const isFailing = (name: string) => name.startsWith("a");

    test.each(kinds)("%s: hold up nothing that comes later", async (_, error) => {
      answer = (names) => {
        if (names.some(isFailing)) throw error();
        return names.map(() => "applied");
      };
      for (let n = 0; n < failing; n += 1) add("a", { leaseMs: 600_000 });
      await clock.advance(10_000);
      for (let n = 0; n < 120; n += 1) {
        add(`b${n}`, { leaseMs: 5_000 });
        await clock.advance(5_000);
        expect(events).toContain(`b${n} applied`);
      }
      expect(events.filter((event) => event.endsWith("dropped") && !isFailing(event))).toEqual([]);
      expect(sent.length).toBeLessThan(60 * failing + 600);
    });
  });

  test("one that alone is met by how things stand is trouble, and told of as such", async () => {
    answer = (names) => {
      if (names.includes("a")) throw new VenturiError("database", "denied", { sqlState: "42501" });
      return names.map(() => "applied");
    };
    for (const name of ["a", "b"]) add(name);
    await clock.settle();
    expect(events).toEqual(["b applied"]);
    expect(warnings()).toMatchObject([{ fields: { error: "denied" } }]);
  });

  test("what is about values is each item's own, however many there are", async () => {
    answer = (names) => {
      if (names.includes("a")) throw refusal();
      return names.map(() => "applied");
    };
    for (const name of ["a", "a", "a", "a"]) add(name);
    await clock.advance(1_000);
    expect(events.filter((event) => event === "a refused")).toHaveLength(4);
    expect(events.filter((event) => event === "a! applied")).toHaveLength(4);
  });

  test("what no substitute mends either is told once an item, and costs few statements", async () => {
    everything(refusal);
    for (let n = 0; n < 50; n += 1) add("a", { leaseMs: 600_000 });
    await clock.advance(60_000);
    const before = sent.length;
    await clock.advance(60_000);
    expect(sent.length - before).toBeLessThan(60);
    expect(events).toHaveLength(100);
  });
});

describe("what is no answer to what was written", () => {
  const unsent: [string, unknown][] = [
    ["a login that the server refuses", new VenturiError("database", "no", { sqlState: "28P01" })],
    ["a database that is gone", new VenturiError("database", "no", { sqlState: "3D000" })],
    ["a pool that has ended", new Error("Cannot use a pool after calling end on the pool")],
    ["a store that has been closed", new VenturiError("closed", "closed")],
    ["a password function that rejects", new Error("Could not load credentials")],
    ["a pool whose connect rejects with an error of its own", new Error("ResourceRequest failed")],
    ["a right that is missing", new VenturiError("database", "no", { sqlState: "42501" })],
    ["a table that is missing", new VenturiError("not-migrated", "no", { sqlState: "42P01" })],
    ["a pooler that knows no such tenant", new VenturiError("database", "", { sqlState: "XX000" })],
    ["nothing at all", undefined],
  ];

  test.each(unsent)("%s: one item waits, and is written as it is", async (_, error) => {
    answer = () => {
      throw error;
    };
    add("a");
    await clock.advance(30_000);
    expect(events).toEqual([]);
    expect(sent.length).toBeLessThan(15);
    answer = (names) => names.map(() => "applied");
    await clock.advance(4_000);
    expect(events).toEqual(["a applied"]);
  });

  test.each(unsent)("%s: several items wait, each until its lease ends", async (_, error) => {
    answer = () => {
      throw error;
    };
    add("a", { leaseMs: 20_000 });
    for (const name of ["b", "c"]) add(name);
    await clock.advance(30_000);
    expect(events).toEqual(["a dropped"]);
    answer = (names) => names.map(() => "applied");
    await clock.advance(4_000);
    expect(events[0]).toBe("a dropped");
    expect(events.slice(1).sort()).toEqual(["b applied", "c applied"]);
  });

  test("an item that alone is met by it does not hold up the others, and is not replaced", async () => {
    answer = (names) => {
      if (names.includes("a")) throw new RangeError("Invalid string length");
      return names.map(() => "applied");
    };
    for (const name of ["a", "b", "c"]) add(name);
    await clock.advance(1_000);
    expect(events.sort()).toEqual(["b applied", "c applied"]);
    expect(warnings()).toHaveLength(1);
    add("d");
    await clock.advance(1_000);
    expect(events).toContain("d applied");
    await clock.advance(70_000);
    expect(events.at(-1)).toBe("a dropped");
  });
});

describe("abandoning", () => {
  test("sends nothing more, calls nobody back and leaves no timer", async () => {
    answer = null;
    add("a");
    await clock.settle();
    add("b");
    queue.abandon();
    expect(clock.pending).toBe(0);
    sent[0]?.answer.resolve(["applied"]);
    await clock.advance(10_000);
    expect(batches()).toEqual(["a"]);
    expect(events).toEqual([]);
    expect(progress).toBe(0);
    expect(clock.pending).toBe(0);
  });

  test("also in the middle of splitting", async () => {
    answer = null;
    for (const name of ["a", "b", "c"]) add(name);
    await clock.settle();
    sent[0]?.answer.reject(refusal());
    await clock.settle();
    queue.abandon();
    sent[1]?.answer.resolve(["applied", "applied"]);
    await clock.advance(10_000);
    expect(batches()).toEqual(["abc", "ab"]);
    expect(events).toEqual([]);
    expect(clock.pending).toBe(0);
  });

  test("also before a statement has gone out", async () => {
    add("a");
    queue.abandon();
    expect(clock.pending).toBe(0);
    await clock.settle();
    expect(sent).toEqual([]);
  });

  test("also while items wait to be tried again, each at a moment of its own", async () => {
    answer = () => ["busy"];
    add("a");
    await clock.advance(20);
    add("b");
    await clock.settle();
    queue.abandon();
    expect(clock.pending).toBe(0);
    await clock.advance(10_000);
    expect(sent).toHaveLength(3);
  });

  test("also while it waits after an error", async () => {
    answer = () => {
      throw outage();
    };
    add("a");
    await clock.settle();
    queue.abandon();
    expect(clock.pending).toBe(0);
    await clock.advance(10_000);
    expect(sent).toHaveLength(1);
    expect(clock.pending).toBe(0);
  });
});
