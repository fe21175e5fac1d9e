import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { PostgresStore } from "@venturi/store-postgres";
import { createDatabase, dropDatabase, providePostgres } from "@venturi-tooling/postgres";
import { dumpSchema } from "@venturi-tooling/testing/schema";
import pg from "pg";
import { root } from "./paths.ts";

const file = join(root, "packages/store-postgres/schema.sql");
const heading = `-- What the migrations of @venturi/store-postgres leave, under the prefix "venturi".
-- Made from the catalog by \`npm run schema\`; never edited, nor run. Read its diff in a review.

`;

/** Writes `schema.sql`, or with `--check` fails when it is not what the migrations leave. */
async function main(): Promise<void> {
  const { values } = parseArgs({ options: { check: { type: "boolean", default: false } } });
  await using server = await providePostgres({ durable: false });
  const url = await createDatabase(server.url);
  const pool = new pg.Pool({ connectionString: url });
  try {
    await new PostgresStore({ pool }).migrate();
    const schema = heading + (await dumpSchema(pool, "venturi"));
    if (!values.check) await writeFile(file, schema);
    else if ((await readFile(file, "utf8")) !== schema) {
      throw new Error("schema.sql is not what the migrations leave: run `npm run schema`");
    }
  } finally {
    await pool.end();
    await dropDatabase(server.url, url);
  }
}

await main();
