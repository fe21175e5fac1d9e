import { expect, test } from "vitest";
import { testDatabase } from "./test-database.ts";

const database = await testDatabase({ migrated: false });

test("a test file has a database of its own", async () => {
  const { rows } = await database.pool.query("select current_database() as name");
  expect(database.url).toContain(rows[0].name);
});
