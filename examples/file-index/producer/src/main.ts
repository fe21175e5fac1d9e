// Lists a directory and enqueues its files: npm start -- DIRECTORY
import { randomBytes } from "node:crypto";
import { resolve } from "node:path";
import { Queue } from "@venturi/queue";
import { pathToText } from "@venturi-examples/file-index-tasks";
import pg from "pg";
import { enqueueListing } from "./enqueue-listing.ts";
import { listFiles } from "./list-files.ts";

const [directory] = process.argv.slice(2);
const connectionString = process.env["DATABASE_URL"];
if (directory === undefined || connectionString === undefined) {
  console.error("usage: DATABASE_URL=postgres://… npm start -- DIRECTORY");
  process.exit(2);
}

const stopping = new AbortController();
for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, () => stopping.abort());
const { signal } = stopping;

const pool = new pg.Pool({ connectionString, max: 1, application_name: "file-index producer" });
const queue = new Queue(pool, { logger: console });
const root = Buffer.from(resolve(directory));
const scan = randomBytes(8).toString("hex");
try {
  const listing = await listFiles(root, signal);
  for (const { folder, reason } of listing.unread) {
    console.warn(`cannot list ${pathToText(folder)}: ${reason}`);
  }
  const ids = await enqueueListing(queue, { scan, root, listing, signal });
  console.log(JSON.stringify({ scan, files: listing.fileCount, jobs: ids.length }));
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
} finally {
  await pool.end();
}
