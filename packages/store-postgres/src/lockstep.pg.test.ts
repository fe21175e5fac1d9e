import { testDatabase } from "@venturi-tooling/testing";
import { expect, it } from "vitest";
import { runLockstep } from "./testing/lockstep/scenario.ts";

const { pool } = await testDatabase();

it("this store and the one in memory answer 500 scenarios alike", async () => {
  const { scenarios, commands } = await runLockstep(pool, { scenarios: 500 });
  expect(scenarios).toBe(500);
  expect(commands).toBeGreaterThan(5_000);
}, 120_000);
