import { testDatabase } from "@venturi-tooling/testing";
import { expect, it } from "vitest";
import { runLockstep } from "./testing/lockstep/scenario.ts";

const { pool } = await testDatabase();

/** Set by the long form, `tooling/proofs/lockstep.mjs`. */
const long = process.env["LOCKSTEP_SCENARIOS"];
const seed = Number(process.env["LOCKSTEP_SEED"] ?? Date.now() % 1_000_000);

it("this store and the one in memory answer 500 scenarios alike", async () => {
  const { scenarios } = await runLockstep(pool, { scenarios: 500, maxCommands: 20 });
  expect(scenarios).toBe(500);
}, 300_000);

if (long !== undefined) {
  it(`this store and the one in memory answer ${long} longer scenarios alike`, async () => {
    const startedAt = performance.now();
    let scenarios = 0;
    let commands = 0;
    for (let part = 0; scenarios < Number(long); part += 1) {
      const count = Math.min(500, Number(long) - scenarios);
      const options = { scenarios: count, maxCommands: 30, seed: seed + part };
      const result = await runLockstep(pool, options);
      scenarios += result.scenarios;
      commands += result.commands;
      const seconds = Math.round((performance.now() - startedAt) / 1_000);
      console.log(`seed ${seed}: ${scenarios} scenarios, ${commands} commands, ${seconds} s`);
    }
    expect(scenarios).toBe(Number(long));
  }, 7_200_000);
}
