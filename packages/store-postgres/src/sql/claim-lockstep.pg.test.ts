import {
  type ClaimKind,
  type ClaimRequest,
  type ClaimResult,
  type JobId,
  takeTurns,
} from "@venturi/core";
import { expectInvariants, testDatabase } from "@venturi-tooling/testing";
import fc from "fast-check";
import { beforeAll, expect, it } from "vitest";
import { PostgresStore } from "../postgres-store.ts";
import { kindId, removeJobs } from "../testing/backlog.ts";
import { recordingPool, verbOf } from "../testing/recording-pool.ts";
import { claimKind, claimRequest, startWorker } from "../testing/store-fixture.ts";

const { pool } = await testDatabase();
const recorder = recordingPool(pool);
const store = new PostgresStore({ pool: recorder });
const kinds = ["a", "b", "c", "d"];
const ids = new Map<string, number>();

beforeAll(async () => {
  for (const kind of kinds) ids.set(kind, await kindId(pool, kind));
});

interface Row {
  readonly kind: string;
  readonly tier: number;
  readonly state: "ready" | "claimed" | "due" | "later";
  /** Milliseconds since it was due, or until it is. */
  readonly ms: number;
}

const anyRow: fc.Arbitrary<Row> = fc.record({
  kind: fc.constantFrom(...kinds),
  tier: fc.nat(2),
  state: fc.constantFrom("ready", "ready", "claimed", "due", "later"),
  ms: fc.nat(50_000),
});
const anyClaimKinds: fc.Arbitrary<ClaimKind[]> = fc
  .shuffledSubarray(kinds, { minLength: 1 })
  .chain((some) =>
    fc.tuple(...some.map((kind) => fc.nat(7).map((n) => claimKind(kind, { limit: n + 1 })))),
  );
const anyScenario = fc.record({
  // Often more than a claim may take.
  rows: fc
    .constantFrom(0, 15)
    .chain((minLength) =>
      fc.uniqueArray(anyRow, { minLength, maxLength: 30, selector: ({ ms }) => ms }),
    ),
  claims: anyClaimKinds,
  limit: fc.integer({ min: 1, max: 16 }),
  ratio: fc.option(fc.integer({ min: 2, max: 5 })),
  counter: fc.nat(100),
  paused: fc.subarray(kinds, { maxLength: 2 }),
  excluded: fc.nat(3),
  afterOneThatTookAll: fc.boolean(),
  isAnyDue: fc.boolean(),
  /** Which of the rows the first claim names, if it names one. */
  hint: fc.option(fc.nat(30)),
});

/** The statements of which the claims consisted, and how often. */
const forms = new Map<string, number>();

it("claims take from any table what takeTurns takes, one after the other until nothing is left", async () => {
  await fc.assert(
    fc.asyncProperty(anyScenario, async (scenario) => {
      await removeJobs(pool);
      await pool.query(
        "update venturi_kinds set paused_at = case when name = any ($1) then now() end",
        [scenario.paused],
      );
      await insert(scenario.rows.filter(({ state }) => scenario.isAnyDue || state !== "due"));
      const worker = await startWorker(store);
      if (scenario.afterOneThatTookAll) await store.claim(claimRequest(worker, ["none"]));
      let { counter } = scenario;
      let hint = await nthJob(scenario.hint);
      for (;;) {
        const stands = await table(scenario.claims, scenario.paused);
        const exclude = stands.waiting.slice(0, scenario.excluded).map(({ id }) => id);
        const waiting = stands.waiting.filter(({ id }) => !exclude.includes(id));
        const turn = { counter, ratio: scenario.ratio };
        const named = hint === undefined ? {} : { hint };
        hint = undefined;
        const changes = { limit: scenario.limit, turn, exclude, ...named };
        const request = claimRequest(worker, scenario.claims, changes);
        const expected = take(request, waiting);

        let answer: ClaimResult | undefined;
        const sent = await recorder.queriesOf(async () => {
          answer = await store.claim(request);
        });
        const form = sent
          .map(verbOf)
          .filter((verb) => verb !== "kinds")
          .join(" ");
        forms.set(form, (forms.get(form) ?? 0) + 1);
        const { jobs, waitMs, blocked } = answer as ClaimResult;
        if (form === "claim_hinted") {
          const isReady = (job: Waiting) => !job.due && job.id === request.hint;
          expect(jobs.map(({ id }) => id)).toEqual(waiting.filter(isReady).map(({ id }) => id));
          expect(blocked).toBe(false);
          counter += jobs.length;
          continue;
        }
        expect(jobs.map(({ id }) => id)).toEqual(expected);
        expect(blocked).toBe(false);
        if (jobs.length < scenario.limit) {
          const soonestMs = await soonest(scenario.claims, scenario.paused);
          expect(waitMs === null).toBe(soonestMs === null);
          expect(Math.abs((waitMs ?? 0) - (soonestMs ?? 0))).toBeLessThan(10_000);
        }
        if (jobs.length === 0) return;
        counter += jobs.length;
      }
    }),
    { numRuns: 500 },
  );
  for (const form of [
    "claim",
    "claim_all",
    "claim_hinted",
    "claim_all claim",
    "claim_all promote claim",
  ])
    expect(forms.get(form)).toBeGreaterThan(0);
  await pool.query(
    "update venturi_queue set run_count = 0, claimed_by = null, claimed_at = null, lease_expires_at = null",
  );
  await expectInvariants(pool);
}, 180_000);

interface Waiting {
  readonly id: JobId;
  readonly kind: string;
  readonly tier: number;
  /** Scheduled, and found due by nobody yet. */
  readonly due: boolean;
}

async function nthJob(n: number | null): Promise<JobId | undefined> {
  const { rows } = await pool.query<{ id: JobId }>(
    "select venturi_ulid(job_id) as id from venturi_queue order by job_id offset $1 limit 1",
    [n ?? 1_000],
  );
  return rows[0]?.id;
}

/** The model's answer: the jobs by the turns, as one claim returns them. */
function take(request: ClaimRequest, waiting: readonly Waiting[]): JobId[] {
  const taken = takeTurns(request, waiting).map((index) => waiting[index] as Waiting);
  const places = new Map(waiting.map((job, index) => [job, index]));
  return taken
    .sort((a, b) => a.tier - b.tier || (places.get(a) ?? 0) - (places.get(b) ?? 0))
    .map(({ id }) => id);
}

/** What is claimable now, in order of arrival: what has arrived, then what is due and has not been found so yet. */
async function table(claims: readonly ClaimKind[], paused: readonly string[]) {
  const open = claims.map(({ kind }) => kind).filter((kind) => !paused.includes(kind));
  const { rows } = await pool.query<Waiting & { isOpen: boolean }>(
    `select venturi_ulid(job_id) as id, name as kind, priority as tier, scheduled as due,
      visible_at <= venturi_clock() as "isOpen"
    from venturi_queue q join venturi_kinds k on k.id = q.kind_id
    where claimed_by is null and name = any ($1)
    order by scheduled, case when scheduled then extract(epoch from visible_at) else seq end`,
    [open],
  );
  return { waiting: rows.filter(({ isOpen }) => isOpen) };
}

/**
 * Milliseconds until the next job is due for which time is all that is missing: not behind others of its kind and tier
 * that are due and have no room.
 */
async function soonest(claims: readonly ClaimKind[], paused: readonly string[]) {
  const open = claims.map(({ kind }) => kind).filter((kind) => !paused.includes(kind));
  const { rows } = await pool.query<{ wait_ms: number | null }>(
    `select (extract(epoch from min(visible_at) - venturi_clock()) * 1000)::float8 as wait_ms
    from (select q.*, bool_or(visible_at <= venturi_clock()) over (partition by kind_id, priority) as has_due
      from venturi_queue q join venturi_kinds k on k.id = q.kind_id
      where scheduled and claimed_by is null and name = any ($1)) q where not has_due`,
    [open],
  );
  return rows[0]?.wait_ms ?? null;
}

async function insert(rows: readonly Row[]): Promise<void> {
  await pool.query(
    `with row as materialized (
      select gen_random_uuid() as id, u.*, venturi_clock() + make_interval(secs =>
        case state when 'later' then 60 + ms / 1000.0 when 'due' then - 1 - ms / 1000.0 else 0 end) as due_at
      from unnest($1::int4[], $2::int2[], $3::text[], $4::float8[]) with ordinality u(kind_id, tier, state, ms, ord)
    ), body as (
      insert into venturi_jobs (id, created_at, kind_id, priority, payload)
      select id, venturi_clock(), kind_id, tier, '{}' from row
    )
    insert into venturi_queue
      (job_id, kind_id, priority, visible_at, scheduled, claimed_by, claimed_at, lease_expires_at, run_count)
    select id, kind_id, tier, due_at, state in ('due', 'later'), c.by, c.since, c.since + interval '1 h', (c.by is not null)::int4
    from row cross join lateral (select case when state = 'claimed' then 999999 end as by,
      case when state = 'claimed' then venturi_clock() end as since) c order by ord`,
    [
      rows.map(({ kind }) => ids.get(kind)),
      rows.map(({ tier }) => tier),
      rows.map(({ state }) => state),
      rows.map(({ ms }) => ms),
    ],
  );
}
