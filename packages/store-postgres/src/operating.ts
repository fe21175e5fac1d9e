import {
  type CleanupRequest,
  type CountsByKind,
  type JobId,
  type JobQuery,
  type JobRecord,
  type JournalEntry,
  type ReadJournalRequest,
  type Stats,
  toUuid,
} from "@venturi/core";
import { abortable } from "./abort.ts";
import type { Database, Row } from "./database.ts";
import type { Names } from "./names.ts";
import { toJobRecord, toJournalEntry } from "./row-mapping.ts";
import { queryJobs } from "./sql/query-jobs.ts";
import type { Statements } from "./statements.ts";

/** Jobs that one cleanup statement deletes at most: each is a transaction of its own, and progress is kept. */
const cleanupBatch = 1_000;

const endCodes = { completed: "c", dead: "d", cancelled: "x" } as const;

/** Reads, and what an operator does by hand. */
export class Operating {
  readonly #database: Database;
  readonly #statements: Statements;
  readonly #names: Names;

  constructor(database: Database, statements: Statements, names: Names) {
    this.#database = database;
    this.#statements = statements;
    this.#names = names;
  }

  async queryJobs(query: JobQuery): Promise<readonly JobRecord[]> {
    const { statement, values } = queryJobs(this.#names, query);
    const rows = await abortable(this.#database.run(statement, values, "read jobs"), query.signal);
    return rows.map(toJobRecord);
  }

  async readJournal({
    jobId,
    limit,
    signal,
  }: ReadJournalRequest): Promise<readonly JournalEntry[]> {
    const values = [toUuid(jobId), limit ?? null];
    const reading = this.#database.run(this.#statements.readJournal, values, "read the journal");
    return (await abortable(reading, signal)).map(toJournalEntry);
  }

  async stats(signal: AbortSignal | undefined): Promise<Stats> {
    const reading = this.#database.run(this.#statements.stats, [], "read stats");
    const rows = await abortable(reading, signal);
    const of = (column: string): CountsByKind => countsByKind(rows, column);
    return {
      pendingByKind: of("pending"),
      scheduledByKind: of("scheduled"),
      oldestPendingAgeMsByKind: of("oldest_ms"),
      claimed: rows.reduce((sum, row) => sum + ((row["claimed"] as number | null) ?? 0), 0),
      deadByKind: of("dead"),
      workers: (rows[0]?.["workers"] as number | undefined) ?? 0,
    };
  }

  async cleanup({ finishedBefore, kind, statuses, signal }: CleanupRequest): Promise<number> {
    const before = finishedBefore.getTime();
    const codes = statuses.map((status) => endCodes[status]);
    let deleted = 0;
    let from = 0;
    for (;;) {
      signal?.throwIfAborted();
      const [row] = await this.#database.run(
        this.#statements.cleanup,
        [before, kind, codes, cleanupBatch, from],
        "clean up ended jobs",
      );
      deleted += (row?.["deleted"] as number | undefined) ?? 0;
      if (((row?.["seen"] as number | undefined) ?? 0) < cleanupBatch) break;
      const last = row?.["last_ms"] as number;
      // A batch whose jobs all ended in one instant, held by others, would be looked at for ever.
      from = row?.["deleted"] === 0 && last === from ? last + 1 : last;
    }
    await this.#database.run(this.#statements.cleanupWorkers, [before], "clean up workers");
    return deleted;
  }

  async apply(verb: "retry" | "cancel", id: JobId): Promise<boolean> {
    const rows = await this.#database.run(this.#statements[verb], [toUuid(id)], `${verb} a job`);
    return rows.length > 0;
  }
}

function countsByKind(rows: readonly Row[], column: string): CountsByKind {
  const counts: Record<string, number> = Object.create(null);
  for (const row of rows) {
    const value = row[column] as number | null;
    const kind = row["kind"] as string | null;
    if (kind === null || value === null || (value === 0 && column !== "oldest_ms")) continue;
    counts[kind] = value;
  }
  return counts;
}
