import {
  type ClaimedJob,
  type ClaimKind,
  type ClaimRequest,
  type ClaimResult,
  priorityOfTier,
  readHeaders,
  takeTurns,
} from "@venturi/core";
import type { Database, JobRow } from "./database.ts";

const tiers = [0, 1, 2] as const;

/** Inside one write transaction: core's `takeTurns` chooses among the first of each kind and tier. */
export function claim(database: Database, request: ClaimRequest): ClaimResult {
  const { kinds, limit, turn } = request;
  promote(database, request);
  const exclude = JSON.stringify(request.exclude ?? []);
  const waiting = kinds
    .flatMap((kind) =>
      tiers.flatMap((tier) =>
        database.all<JobRow>(
          `select * from jobs where state = 'pending' and not scheduled and kind = ? and tier = ?
          and id not in (select value from json_each(?)) order by seq limit ?`,
          kind.kind,
          tier,
          exclude,
          Math.min(kind.limit, limit),
        ),
      ),
    )
    .sort((a, b) => a.seq - b.seq);
  const taken = takeTurns({ limit, kinds, turn }, waiting)
    .map((index) => waiting[index] as JobRow)
    .sort((a, b) => a.tier - b.tier || a.seq - b.seq);
  const jobs = taken.map((row) => hold(database, request, row));
  return { jobs, waitMs: waitMs(database, kinds), blocked: false };
}

function hold(database: Database, { worker, kinds }: ClaimRequest, row: JobRow): ClaimedJob {
  const { leaseMs: ofKind, backstop } = kinds.find(({ kind }) => kind === row.kind) as ClaimKind;
  const now = database.now();
  const leaseMs = row.lease_ms ?? ofKind;
  database.run(
    `update jobs set state = 'claimed', claimed_by = ?, claimed_at = ?, lease_expires_at = ?, backstop = ?,
      run_count = run_count + 1 where id = ?`,
    worker,
    now,
    now + leaseMs,
    backstop,
    row.id,
  );
  return {
    id: row.id,
    kind: row.kind,
    priority: priorityOfTier(row.tier),
    payload: row.payload,
    carry: row.carry,
    headers: row.headers === null ? null : readHeaders(row.headers),
    runCount: row.run_count + 1,
    failureCount: row.failure_count,
    latencyMs: now - row.visible_at,
    leaseMs,
    leaseExpiresAt: new Date(now + leaseMs),
  };
}

/** What has become due arrives now, as much of each kind and tier as the claim could take. */
function promote(database: Database, { kinds, limit, exclude }: ClaimRequest): void {
  const due = kinds.flatMap((kind) =>
    tiers.flatMap((tier) =>
      database.all<Pick<JobRow, "id" | "tier" | "visible_at">>(
        `select id, tier, visible_at from jobs where state = 'pending' and scheduled and kind = ? and tier = ?
        and visible_at <= ? order by visible_at limit ?`,
        kind.kind,
        tier,
        database.now(),
        Math.min(kind.limit, limit) + (exclude?.length ?? 0),
      ),
    ),
  );
  due.sort((a, b) => a.tier - b.tier || a.visible_at - b.visible_at);
  for (const { id } of due)
    database.run("update jobs set scheduled = 0, seq = ? where id = ?", database.nextSeq(), id);
}

function waitMs(database: Database, kinds: readonly ClaimKind[]): number | null {
  const now = database.now();
  const waits = kinds.flatMap(({ kind }) =>
    tiers.flatMap((tier) => {
      const next = database.get<{ visible_at: number }>(
        `select visible_at from jobs where state = 'pending' and scheduled and kind = ? and tier = ?
        and visible_at > ? order by visible_at limit 1`,
        kind,
        tier,
        now,
      );
      return next === undefined ? [] : [next.visible_at - now];
    }),
  );
  return waits.length === 0 ? null : Math.min(...waits);
}
