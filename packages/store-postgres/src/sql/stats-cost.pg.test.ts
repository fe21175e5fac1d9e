import { testDatabase } from "@venturi-tooling/testing";
import { expect, it } from "vitest";
import { addBacklog, addEnded } from "../testing/backlog.ts";
import { Explainer } from "../testing/explainer.ts";
import { names } from "../testing/store-fixture.ts";
import { stats } from "./stats.ts";

const { pool } = await testDatabase();
const query = { text: stats(names).text, values: [] };

it("the cost of stats does not grow with the jobs that have completed", async () => {
  await addBacklog(pool, { kind: "a", count: 100 });
  await addEnded(pool, { kind: "a", count: 100, outcome: "dead" });
  const explainer = await Explainer.open(pool, "custom");
  const cost = async () => {
    await pool.query("vacuum analyze");
    await explainer.run(query);
    return (await explainer.run(query)).buffers;
  };
  const before = await cost();
  await addEnded(pool, { kind: "a", count: 50_000, outcome: "completed" });
  const after = await cost();
  explainer.close();
  expect(before).toBeGreaterThan(0);
  expect(after).toBeLessThanOrEqual(before + 5);
}, 60_000);
