import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Queue } from "@venturi/queue";
import { Worker } from "@venturi/worker";
import { enqueueListing, listFiles } from "@venturi-examples/file-index-producer";
import { IndexFile, IndexFolder } from "@venturi-examples/file-index-tasks";
import { indexFile, indexFolder } from "@venturi-examples/file-index-worker";
import { expect, it } from "vitest";
import { loadSqlite, type OpenSqlite } from "./open-sqlite.ts";
import { sqliteResults } from "./sqlite-results.ts";
import { SqliteStore } from "./sqlite-store.ts";

const sqlite = await loadSqlite();
if (typeof sqlite === "function") checkFileIndex(sqlite);
else it(`the file index does not run here: ${sqlite.reason}`, () => expect(sqlite).toBeDefined());

function checkFileIndex(open: OpenSqlite): void {
  it("the file index's handlers run on two connections of one SQLite file, each job once", async () => {
    const folder = await mkdtemp(join(tmpdir(), "venturi-sqlite-"));
    const tree = join(folder, "tree");
    await mkdir(join(tree, "sub"), { recursive: true });
    const texts = Array.from({ length: 40 }, (_, n) => `${"word ".repeat(n)}\n`.repeat(n));
    for (const [n, text] of texts.entries())
      await writeFile(join(tree, n % 2 === 0 ? "." : "sub", `${n}.txt`), text);

    const dbs = [open(join(folder, "jobs.db")), open(join(folder, "jobs.db"))];
    try {
      const [queue, ...workers] = [
        new Queue(new SqliteStore(dbs[0] as (typeof dbs)[0])),
        ...dbs.map((db) =>
          new Worker(new SqliteStore(db), { state: sqliteResults(db), pollMax: "50ms" })
            .register(IndexFile, indexFile)
            .register(IndexFolder, indexFolder),
        ),
      ] as const;
      const root = Buffer.from(tree);
      const listing = await listFiles(root);
      const ids = await enqueueListing(queue, { scan: "s", root, listing });
      const stop = new AbortController();
      const running = workers.map((worker) => worker.run({ signal: stop.signal }));
      const open = () => queue.jobs({ status: ["pending", "claimed"], limit: 1 });
      while ((await open()).jobs.length > 0)
        await new Promise((resolve) => setTimeout(resolve, 20));
      stop.abort();
      expect(await Promise.all(running)).toEqual([{ unreleased: [] }, { unreleased: [] }]);

      const journals = await Promise.all(ids.map((id) => queue.journal(id)));
      const ends = journals.map((entries) =>
        entries.filter(({ outcome }) => outcome !== "paused").map(({ outcome }) => outcome),
      );
      expect(ends).toEqual(ids.map(() => ["completed"]));
      const sums = dbs[0]
        ?.prepare(
          "select count(*) as folders, sum(indexed) as files, sum(lines) as lines, sum(words) as words from folders",
        )
        .get();
      const lines = texts.reduce((sum, _, n) => sum + n, 0);
      const words = texts.reduce((sum, _, n) => sum + n * n, 0);
      expect(sums).toEqual({ folders: 2, files: 40, lines, words });
    } finally {
      for (const db of dbs) db.close();
      await rm(folder, { recursive: true, force: true });
    }
  });
}
