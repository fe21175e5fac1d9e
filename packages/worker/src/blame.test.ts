import { VenturiError } from "@venturi/core";
import { beforeEach, describe, expect, test } from "vitest";
import { Blame, type Failed, type Tried } from "./blame.ts";
import { ManualClock } from "./testing/manual-clock.ts";

interface Item {
  readonly name: string;
  readonly tries: number;
}

/** Says something about the item. */
const refused = () => new VenturiError("database", "violates a check", { sqlState: "23514" });
/** Is about the item's very value. */
const tooLong = () => new VenturiError("database", "value too long", { sqlState: "22001" });
/** Says how things stand. */
const noRight = () => new VenturiError("database", "permission denied", { sqlState: "42501" });

let clock: ManualClock;
let blame: Blame<Item>;

beforeEach(() => {
  clock = new ManualClock();
  blame = new Blame(clock, true);
});

const item = (name: string, tries = 0): Item => ({ name, tries });
const failed = (error: unknown, ...items: readonly Item[]): Failed<Item>[] =>
  items.map((each) => ({ item: each, error }));
const tried = (all: readonly Failed<Item>[], written = 0): Tried<Item> => ({
  written,
  failed: [...all],
  untried: [],
});

describe("to blame are", () => {
  test("circumstances, where everything fails alike and nothing was written", () => {
    expect(blame.judge(tried(failed(refused(), item("a"), item("b"))))).toBe("circumstances");
  });

  test("the items, where something was written", () => {
    expect(blame.judge(tried(failed(refused(), item("a"), item("b")), 1))).toBe("items");
  });

  test("the items, where they fail differently", () => {
    const all = [...failed(refused(), item("a")), ...failed(noRight(), item("b"))];
    expect(blame.judge(tried(all))).toBe("items");
  });

  test("the items, where it is their values", () => {
    expect(blame.judge(tried(failed(tooLong(), item("a"), item("b"))))).toBe("items");
  });

  test("a single item, if the server refuses it", () => {
    expect(blame.judge(tried(failed(refused(), item("a"))))).toBe("items");
    expect(blame.judge(tried(failed(noRight(), item("a"))))).toBe("circumstances");
  });

  test("the items again, where each has been refused before", () => {
    const all = failed(refused(), item("a"), item("b"));
    for (const each of all) expect(blame.isNews(each)).toBe(true);
    expect(blame.judge(tried(all))).toBe("refused-before");
  });

  test("the items, where it is their values and not all were told of", () => {
    const all = failed(tooLong(), item("a"), item("b"));
    blame.isNews(all[0] as Failed<Item>);
    expect(blame.judge(tried(all))).toBe("items");
    blame.isNews(all[1] as Failed<Item>);
    expect(blame.judge(tried(all))).toBe("refused-before");
  });

  test("the items, whatever they fail of, for whoever does not wait", () => {
    blame = new Blame(clock, false);
    const all = failed(noRight(), item("a"), item("b"));
    expect(blame.judge(tried(all))).toBe("items");
    for (const each of all) expect(blame.isNews(each)).toBe(true);
  });
});

test("three that fail alike are enough", () => {
  const three = failed(refused(), item("a"), item("b"), item("c"));
  expect(blame.isClear(tried(three.slice(0, 2)))).toBe(false);
  expect(blame.isClear(tried(three))).toBe(true);
});

test("a refusal is news once, and what may pass is none", () => {
  const [each] = failed(refused(), item("a")) as [Failed<Item>];
  expect(blame.isNews(each)).toBe(true);
  expect(blame.isNews(each)).toBe(false);
  expect(blame.isPassing(noRight())).toBe(true);
  expect(blame.isNews({ item: item("b"), error: noRight() })).toBe(false);
});

describe("while items fail alike", () => {
  const batch = [item("a", 1), item("b"), item("c")];

  test("the newest of those that were tried least goes before the others", () => {
    expect(blame.scoutOf(batch)).toBeNull();
    blame.judge(tried(failed(refused(), item("x"), item("y"))));
    expect(blame.scoutOf(batch)).toBe(batch[2]);
    expect(blame.scoutOf([...batch].reverse())).toBe(batch[1]);
    expect(blame.scoutOf(batch.slice(0, 1))).toBeNull();
  });

  test.each([
    ["a success", () => blame.succeeded()],
    ["another error", () => blame.isKnown(noRight())],
    ["half a minute", () => clock.advance(30_000)],
  ])("%s ends it", async (_, end) => {
    blame.judge(tried(failed(refused(), item("x"), item("y"))));
    expect(blame.isKnown(refused())).toBe(true);
    await end();
    expect(blame.scoutOf(batch)).toBeNull();
    expect(blame.isKnown(refused())).toBe(false);
  });
});
