import { describe, expect, it } from "vitest";
import { type ContractSubject, storeContract } from "./index.ts";
import { ManualClock } from "./manual-clock.ts";
import { MemoryStore } from "./memory-store.ts";

function makeStore(): ContractSubject {
  const clock = new ManualClock();
  const store = new MemoryStore({ clock });
  return { store, clock, pauseKind: (kind) => store.pauseKind(kind) };
}

const cases = storeContract(makeStore);
const beyond = cases.filter(({ needs }) => needs.includes("transactions"));

for (const topic of new Set(cases.map((each) => each.topic))) {
  const some = cases.filter((each) => each.topic === topic && !beyond.includes(each));
  if (some.length === 0) continue;
  describe(`the store in memory, ${topic}`, () => {
    for (const { name, run } of some) it(name, async () => expect(await run()).toBeNull());
  });
}

it("says that it takes part in no transactions, and nothing else is left unchecked", async () => {
  const reasons = await Promise.all(cases.map(({ run }) => run()));
  expect(reasons.filter((reason) => reason !== null)).toEqual(
    beyond.map(() => "the store takes part in no transactions"),
  );
});
