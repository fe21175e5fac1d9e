import { testDatabase } from "@venturi-tooling/testing";
import { expect, it } from "vitest";
import { runLockstep } from "./testing/lockstep/scenario.ts";

const { pool } = await testDatabase();

/** The long form is `tooling/proofs/lockstep.mjs`. */
const scenarios = Number(process.env["LOCKSTEP_SCENARIOS"] ?? 500);
const seed = process.env["LOCKSTEP_SEED"];

it(`this store and the one in memory answer ${scenarios} scenarios alike`, async () => {
  const startedAt = performance.now();
  const options = seed === undefined ? { scenarios } : { scenarios, seed: Number(seed) };
  const result = await runLockstep(pool, options);
  const seconds = Math.round((performance.now() - startedAt) / 1_000);
  if (scenarios > 500)
    console.log(`${result.scenarios} scenarios, ${result.commands} commands, ${seconds} s`);
  expect(result.scenarios).toBe(scenarios);
}, 7_200_000);
