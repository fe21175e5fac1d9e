import { type ContractSubject, ManualClock, storeContract } from "@venturi/testing";
import { describe, expect, it } from "vitest";
import { loadSqlite, type OpenSqlite } from "./open-sqlite.ts";
import { SqliteStore } from "./sqlite-store.ts";

const sqlite = await loadSqlite();
if (typeof sqlite === "function") checkContract(sqlite);
else
  it(`the SQLite store is not checked here: ${sqlite.reason}`, () => expect(sqlite).toBeDefined());

function checkContract(open: OpenSqlite): void {
  const makeStore = (): ContractSubject => {
    const db = open(":memory:");
    const clock = new ManualClock();
    return {
      store: new SqliteStore(db, { now: () => clock.now() }),
      clock,
      close: () => {
        db.close();
      },
    };
  };
  const cannot = new Set(["transactions", "notifications", "pauseKind"]);
  const cases = storeContract(makeStore);
  const beyond = cases.filter(({ needs }) => needs.some((need) => cannot.has(need)));

  for (const topic of new Set(cases.map((each) => each.topic))) {
    const some = cases.filter((each) => each.topic === topic && !beyond.includes(each));
    if (some.length === 0) continue;
    describe(`the SQLite store, ${topic}`, () => {
      for (const { name, run } of some) it(name, async () => expect(await run()).toBeNull());
    });
  }

  it("the SQLite store says what it cannot do, and nothing else is left unchecked", async () => {
    const reasons = await Promise.all(cases.map(({ run }) => run()));
    expect(reasons.filter((reason) => reason !== null)).toHaveLength(beyond.length);
    expect(new Set(reasons)).toEqual(
      new Set([
        null,
        "the store takes part in no transactions",
        "the store sends no notifications",
        "kinds cannot be paused",
      ]),
    );
  });
}
