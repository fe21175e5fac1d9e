import { readFileSync } from "node:fs";
import { join } from "node:path";
import { testDatabase } from "@venturi-tooling/testing";
import { describe, expect, it } from "vitest";
import { root } from "./paths.ts";

const database = await testDatabase();

/** Pages whose SQL is for reading, and to be copied as it stands. */
const pages = ["alerts", "autovacuum", "operating", "sizing", "tables", "upgrading"];

/** Blocks of SQL, and queries in cells of tables. */
function queriesOf(page: string): string[] {
  const text = readFileSync(join(root, "docs/operations", `${page}.md`), "utf8");
  const blocks = [...text.matchAll(/^```sql\n([\s\S]*?)^```/gm)].map((match) => match[1] ?? "");
  const cells = [...text.matchAll(/`(select [^`]+)`/g)].map((match) => match[1] ?? "");
  return [...blocks, ...cells];
}

describe.each(pages)("every query of docs/operations/%s.md", (page) => {
  const queries = queriesOf(page);

  it("is there", () => expect(queries).not.toEqual([]));

  it.each(queries)("runs as it stands: %s", async (query) => {
    await database.pool.query(query);
  });
});
