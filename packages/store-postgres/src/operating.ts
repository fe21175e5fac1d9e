import {
  type CleanupRequest,
  type CountsByKind,
  type JobQuery,
  type JobRecord,
  type JobRequest,
  type JournalEntry,
  type ReadJournalRequest,
  type Stats,
  toUuid,
} from "@venturi/core";
import type { Abortable } from "./abort.ts";
import type { Database, Row } from "./database.ts";
import type { Names } from "./names.ts";
import { toJobRecord, toJournalEntry } from "./row-mapping.ts";
import { queryJobs } from "./sql/query-jobs.ts";
import type { Statements } from "./statements.ts";

/** Jobs that one cleanup statement deletes at most: each is a transaction of its own, and progress is kept. */
const cleanupBatch = 1_000;

/** Into how many spans of time the age of the oldest job is cut at first; they grow and shrink with what they hold. */
const cleanupSpans = 1_000;

const endCodes = { completed: "c", dead: "d", cancelled: "x" } as const;

/** Reads, and what an operator does by hand. */
export class Operating {
  readonly #database: Database;
  readonly #statements: Statements;
  readonly #names: Names;
  readonly #abortable: Abortable;

  constructor(database: Database, statements: Statements, names: Names, abortable: Abortable) {
    this.#database = database;
    this.#statements = statements;
    this.#names = names;
    this.#abortable = abortable;
  }

  async queryJobs(query: JobQuery): Promise<readonly JobRecord[]> {
    const { statement, values } = queryJobs(this.#names, query);
    const reading = () => this.#database.run(statement, values, "read jobs");
    const rows = await this.#abortable(reading, query.signal);
    return rows.map(toJobRecord);
  }

  async readJournal({
    jobId,
    limit,
    signal,
  }: ReadJournalRequest): Promise<readonly JournalEntry[]> {
    const values = [toUuid(jobId), limit ?? null];
    const statement = this.#statements.readJournal;
    const reading = () => this.#database.run(statement, values, "read the journal");
    return (await this.#abortable(reading, signal)).map(toJournalEntry);
  }

  async stats(signal: AbortSignal | undefined): Promise<Stats> {
    const reading = () => this.#database.run(this.#statements.stats, [], "read stats");
    const rows = await this.#abortable(reading, signal);
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

  cleanup(request: CleanupRequest): Promise<number> {
    return this.#abortable(() => this.#cleanup(request), request.signal);
  }

  /** Begins no further batch once the signal has aborted. */
  async #cleanup({ finishedBefore, kind, statuses, signal }: CleanupRequest): Promise<number> {
    const doing = "clean up ended jobs";
    const before = finishedBefore.getTime();
    const codes = statuses.map((status) => endCodes[status]);
    const [oldest] = await this.#database.run(this.#statements.cleanupStart, [], doing);
    const start = Math.max(
      0,
      Math.min((oldest?.["start_ms"] as number | undefined) ?? before, before),
    );
    let deleted = 0;
    const width = (before - start) / cleanupSpans;
    let span: Span = { from: 0, until: start + width, width };
    for (;;) {
      signal?.throwIfAborted();
      const until = Math.min(span.until, before);
      const values = [until, kind, codes, cleanupBatch, span.from];
      const [row] = await this.#database.run(this.#statements.cleanup, values, doing);
      const seen = row as CleanupRow | undefined;
      deleted += seen?.deleted ?? 0;
      if (until >= before && (seen?.seen ?? 0) < cleanupBatch) break;
      span = nextSpan({ ...span, until }, seen);
    }
    // Entries of other kinds would lose their workers' names.
    if (kind === null) await this.#database.run(this.#statements.cleanupWorkers, [before], doing);
    return deleted;
  }

  async apply(verb: "retry" | "cancel", { id, signal }: JobRequest): Promise<boolean> {
    const applying = () =>
      this.#database.run(this.#statements[verb], [toUuid(id)], `${verb} a job`);
    return (await this.#abortable(applying, signal)).length > 0;
  }
}

interface Span {
  readonly from: number;
  readonly until: number;
  readonly width: number;
}

interface CleanupRow extends Row {
  readonly deleted: number;
  readonly seen: number;
  readonly first_ms: number | null;
  readonly last_ms: number | null;
}

/** Where to look next: spans that hold about a batch, so that no batch reads much more than it deletes. */
function nextSpan({ from, until, width }: Span, row: CleanupRow | undefined): Span {
  if (row === undefined || row.seen < cleanupBatch) {
    const wider = (row?.seen ?? 0) < cleanupBatch / 4 ? width * 4 : width;
    return { from: until, until: until + wider, width: wider };
  }
  const last = row.last_ms ?? until;
  // A batch whose jobs all ended in one instant, held by others, would be looked at for ever.
  const next = row.deleted === 0 && last === from ? last + 1 : last;
  const fitting = Math.max(1, last - (row.first_ms ?? last));
  return { from: next, until: next + fitting, width: fitting };
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
