import { invariantViolations } from "@venturi-tooling/testing/violations";
import type pg from "pg";
import type { Diaries } from "./diaries.ts";
import { rules } from "./rules.ts";

/** A run that its worker ended. */
export interface RunEnd {
  /** On the database's clock, in epoch milliseconds. */
  readonly at: number;
  readonly worker: string | null;
}

/** What became of the jobs of a scenario. */
export interface Verdict {
  readonly enqueued: number;
  readonly runs: number;
  readonly completed: number;
  readonly dead: number;
  readonly merged: number;
  /** Accepted, and not to be found. */
  readonly lost: number;
  /** Found, and never enqueued. */
  readonly invented: number;
  /** Have not ended though everything was given time to. */
  readonly stuck: number;
  /** Handlers that came to a good end again, for a job whose earlier run was lost: what at-least-once allows. */
  readonly repeated: number;
  /** Runs that have been settled twice, or completed jobs that were completed again. */
  readonly doublySettled: number;
  readonly staleRecovered: number;
  readonly released: number;
  /** Names of the workers whose runs others had to recover. */
  readonly losers: readonly string[];
  readonly runEnds: readonly RunEnd[];
  readonly violations: readonly string[];
}

interface Entry {
  readonly id: string;
  readonly run: number;
  readonly outcome: string;
  readonly at: number;
  readonly worker: string | null;
}

/** Runs that end a run, by their letters in the journal. */
const runEnding = "'c', 'p', 'r', 'd', 's', 'l'";

/** Checks everything the database and the processes know against each other. Reads the whole journal. */
export async function judge(client: pg.Client, diaries: Diaries): Promise<Verdict> {
  // After a crash the server has forgotten how much was written, and plans for tables as small as they once were.
  await client.query("analyze");
  const violations = await invariantViolations(client);
  for (const { statement, sql } of rules) {
    const { rows } = await client.query(`${sql} limit 5`);
    violations.push(...rows.map((row) => `${statement}: ${JSON.stringify(row)}`));
  }
  const entries = await readEntries(client);
  const stored = await readIds(client);
  const lost = [...diaries.accepted].filter((id) => !stored.has(id));
  const invented = [...stored].filter((id) => !diaries.tried.has(id));
  const live = await client.query("select venturi_ulid(job_id) as id from venturi_queue");
  violations.push(...sampleOf(lost, "was accepted and is lost"));
  violations.push(...sampleOf(invented, "was never enqueued"));
  violations.push(
    ...sampleOf(
      live.rows.map(({ id }) => String(id)),
      "has not ended",
    ),
  );
  const { twice, repeated, problems } = compare(entries, diaries);
  violations.push(...problems);
  const count = (outcome: string) => entries.filter((entry) => entry.outcome === outcome).length;
  const { rows: merges } = await client.query(
    "select count(*)::int as n from chaos_journal where outcome = 'm'",
  );
  return {
    enqueued: stored.size,
    runs: entries.length,
    completed: count("c"),
    dead: count("d"),
    merged: Number(merges[0]?.n),
    lost: lost.length,
    invented: invented.length,
    stuck: live.rows.length,
    repeated,
    doublySettled: twice,
    staleRecovered: count("s"),
    released: count("l"),
    losers: [
      ...new Set(
        entries.filter(({ outcome }) => outcome === "s").map(({ worker }) => worker ?? "?"),
      ),
    ],
    runEnds: entries.filter(({ outcome }) => "cprd".includes(outcome)),
    violations,
  };
}

/** Entries and diaries: what was settled must have been done, and what was done must be accounted for. */
export function compare(
  entries: readonly Entry[],
  { tried, started, ended }: Diaries,
): { twice: number; repeated: number; problems: string[] } {
  const problems: string[] = [];
  const outcomes = new Map<string, string>();
  let twice = 0;
  for (const { id, run, outcome } of entries) {
    const key = `${id} ${run}`;
    if (outcomes.has(key)) {
      twice += 1;
      problems.push(`run ${run} of ${id} was settled twice`);
    }
    outcomes.set(key, outcome);
  }
  const done = { c: "completed", p: "paused", r: "failed", d: "failed" } as const;
  for (const [key, outcome] of outcomes) {
    const expected = done[outcome as keyof typeof done];
    if (expected === undefined || ended.get(key) === expected) continue;
    // What completes in its handler's transaction has done so before the handler ends, which it may never do.
    if (outcome === "c" && tried.get(key.slice(0, 26)) === "writing") continue;
    problems.push(`run ${key} was settled as ${outcome}, its handler ended ${ended.get(key)}`);
  }
  const goodEnds = new Map<string, number>();
  for (const [key, how] of ended) {
    const outcome = outcomes.get(key);
    if (how === "completed") {
      const id = key.slice(0, 26);
      goodEnds.set(id, (goodEnds.get(id) ?? 0) + 1);
      if (outcome !== "c" && outcome !== "s" && outcome !== "l")
        problems.push(`the handler of run ${key} completed, the journal says ${outcome}`);
    }
  }
  for (const [key, times] of started) {
    if (times > 1) problems.push(`run ${key} was started ${times} times`);
    if (!outcomes.has(key))
      problems.push(`run ${key} was started and the journal knows nothing of it`);
  }
  let repeated = 0;
  for (const times of goodEnds.values()) repeated += times - 1;
  return { twice, repeated, problems: problems.slice(0, 10) };
}

async function readEntries(client: pg.Client): Promise<Entry[]> {
  const { rows } = await client.query(`select venturi_ulid(job_id) as id, run_no as run,
      outcome::text, extract(epoch from recorded_at)::float8 * 1000 as at, w.name as worker
    from chaos_journal left join venturi_workers w on w.id = worker_id
    where outcome in (${runEnding}) order by entry_no`);
  return rows;
}

async function readIds(client: pg.Client): Promise<Set<string>> {
  const { rows } = await client.query({
    text: `select venturi_ulid(id) from chaos_jobs
      union select venturi_ulid(incoming_id) from chaos_journal where incoming_id is not null`,
    rowMode: "array",
  });
  return new Set(rows.map(([id]) => String(id)));
}

function sampleOf(ids: readonly string[], what: string): string[] {
  if (ids.length === 0) return [];
  return [`${ids.length} jobs, such as ${ids.slice(0, 3).join(", ")}: each ${what}`];
}
