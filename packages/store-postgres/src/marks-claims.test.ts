import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Marks, type Tier, tiers } from "./marks.ts";

const kind = 7;
const start = [-1e18, -1e18, -1e18] as const;

describe("claims that begin at the marks, whatever is committed late or put back", () => {
  const step = fc.oneof(
    { weight: 2, arbitrary: fc.record({ do: fc.constant("add"), tier: fc.nat(2), n: fc.nat(9) }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("open"), tier: fc.nat(2), n: fc.nat(0) }) },
    {
      weight: 1,
      arbitrary: fc.record({ do: fc.constant("commit"), tier: fc.nat(2), n: fc.nat(9) }),
    },
    {
      weight: 1,
      arbitrary: fc.record({ do: fc.constant("put back"), tier: fc.nat(2), n: fc.nat(9) }),
    },
    {
      weight: 6,
      arbitrary: fc.record({ do: fc.constant("claim"), tier: fc.nat(2), n: fc.nat(4) }),
    },
    {
      weight: 2,
      arbitrary: fc.record({ do: fc.constant("wait"), tier: fc.nat(2), n: fc.nat(99) }),
    },
  );

  it("bring what was put back before what came later, and all of it in the end", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 120 }), fc.boolean(), (steps, isDear) => {
        const table = new Table(isDear);
        for (const { do: what, tier, n } of steps) table.step(what, tier as Tier, n);
        table.step("commit", 0, Number.POSITIVE_INFINITY);
        const waiting = table.waiting;
        // A look at each tier within a second and three claims, and then each claim of a tier brings one.
        for (let n = 0; n <= 3 * waiting + 6; n += 1) {
          table.step("wait", 0, 400);
          for (const tier of tiers) table.step("claim", tier, 0);
        }
        expect(table.waiting).toBe(0);
      }),
      { numRuns: 1_000 },
    );
  });
});

interface TableRow {
  readonly tier: Tier;
  readonly seq: number;
  state: "open" | "waiting" | "claimed";
  /** Put back, and claims were told where. */
  isKnown: boolean;
}

/** Jobs of one kind in a table, and a claimer of them that begins where its marks say. */
class Table {
  readonly #marks = new Marks({ lagMs: 25, fullWalkMs: 1_000 });
  readonly #rows: TableRow[] = [];
  readonly #isDear: boolean;
  #now = 0;

  constructor(isDear: boolean) {
    this.#isDear = isDear;
  }

  get waiting(): number {
    return this.#rows.filter(({ state }) => state === "waiting").length;
  }

  step(what: string, tier: Tier, n: number): void {
    if (what === "wait") this.#now += n;
    else if (what === "open") this.#add(tier, "open");
    else if (what === "add") for (let each = 0; each <= n; each += 1) this.#add(tier, "waiting");
    else if (what === "commit") this.#commit(n);
    else if (what === "put back") this.#putBack(n);
    else this.#claim(tier, n + 1);
  }

  #add(tier: Tier, state: TableRow["state"]): void {
    this.#rows.push({ tier, seq: this.#rows.length + 1, state, isKnown: false });
  }

  /** Those that are open, the first of them last. */
  #commit(most: number): void {
    const open = this.#rows.filter(({ state }) => state === "open").reverse();
    for (const row of open.slice(0, Math.max(1, most))) row.state = "waiting";
  }

  #putBack(n: number): void {
    const claimed = this.#rows.filter(({ state }) => state === "claimed");
    const row = claimed[n % Math.max(1, claimed.length)];
    if (row === undefined) return;
    row.state = "waiting";
    row.isKnown = true;
    this.#marks.putBack(kind, row.tier, row.seq);
  }

  /** Of one tier, as if it were its turn; the others are looked at as well. */
  #claim(of: Tier, limit: number): void {
    this.#now += 1;
    const begin = this.#marks.isEmpty
      ? "start"
      : (this.#marks.dueTier([kind], this.#now) ?? "marks");
    const isTold = begin !== "marks" || this.#isDear || this.#marks.isLowered([kind]);
    const from = this.#marks.starts(kind, { begin, start, mayBeLow: true, now: this.#now });
    const lastSeq = this.#rows.length;
    for (const tier of tiers) {
      const found = this.#rows.filter(
        (row) => row.tier === tier && row.state === "waiting" && row.seq > from[tier],
      );
      const brought = tier === of ? found.slice(0, limit) : [];
      for (const row of brought) this.#bring(row);
      const first = found[0]?.seq;
      const clearTo = isTold ? (first === undefined ? lastSeq : first - 1) : undefined;
      const places = { last: brought.at(-1)?.seq, clearTo };
      this.#marks.ended(kind, tier, places, this.#isDear, this.#now);
    }
    const looked = begin === "marks" ? [] : begin === "start" ? [null] : [begin];
    for (const tier of looked) this.#marks.walked(tier, [kind], 0, this.#now);
  }

  #bring(row: TableRow): void {
    const passed = this.#rows.filter(
      (other) =>
        other.isKnown &&
        other.state === "waiting" &&
        other.tier === row.tier &&
        other.seq < row.seq,
    );
    expect(passed).toEqual([]);
    row.state = "claimed";
    row.isKnown = false;
  }
}
