import type { SystemName } from "./names.ts";

/** Counts the jobs that have not ended, so that nobody is praised for what was never written down. */
const counts: Readonly<Partial<Record<SystemName, string>>> = {
  venturi: "select count(*)::float8 as n from venturi_queue",
  "graphile-worker": "select count(*)::float8 as n from graphile_worker.jobs",
  "pg-boss":
    "select count(*)::float8 as n from pgboss.job where state not in ('completed', 'failed', 'cancelled')",
  "bullmq-postgres":
    "select count(*)::float8 as n from bullmq.job where state not in ('completed', 'failed')",
  limit: "select count(*)::float8 as n from bench_limit.queue",
};

/** The statement that counts them, or null where there is no table to ask. */
export function leftoverSql(system: SystemName): string | null {
  return counts[system] ?? null;
}

/** The tables that a system claims from and writes to while it works, by which scanners disturb it most. */
export const hotTables: Readonly<Partial<Record<SystemName, readonly string[]>>> = {
  venturi: ["venturi_queue", "venturi_jobs", "venturi_journal"],
  "graphile-worker": ["graphile_worker._private_jobs"],
  "pg-boss": ["pgboss.job"],
};
