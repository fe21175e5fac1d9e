import { testDatabase } from "@venturi-tooling/testing";
import { expect, it } from "vitest";
import { fuzzDatabase } from "./testing/fuzz/database.ts";
import { secret } from "./testing/fuzz/values.ts";

const { pool, url } = await testDatabase();
/** Set by the long form, `tooling/proofs/fuzz.mjs`. */
const inputs = Number(process.env["FUZZ_DATABASE"] ?? 1_500);
const seed = Number(process.env["FUZZ_SEED"] ?? 1);

it(`whatever ${inputs} jobs, calls, rows and filters put into the database, nothing crashes, is stuck or is told to a log`, async () => {
  const { records, ...report } = await fuzzDatabase({ pool, inputs, seed });
  if (process.env["FUZZ_DATABASE"] !== undefined) console.log(JSON.stringify(report));
  expect(report.inputs).toBeGreaterThanOrEqual(inputs);
  expect(report.runs).toBeGreaterThan(inputs / 20);
  const password = new URL(url).password;
  const told = records.filter((record) => {
    const line = JSON.stringify(record);
    return line.includes(secret) || (password !== "" && line.includes(password));
  });
  expect(told).toEqual([]);
  // The tables are still there, and a stranger's SQL has made none.
  const { rows } = await pool.query(
    "select count(*)::int as tables from pg_class where relname like 'venturi%' and relkind = 'r'",
  );
  expect(rows).toEqual([{ tables: 9 }]);
}, 7_200_000);
