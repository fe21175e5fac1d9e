import {
  type EnqueuedJob,
  type EnqueueJob,
  type FindCandidatesRequest,
  type FindCandidatesResult,
  isVenturiError,
  type JobId,
  type Logger,
  type MergeCandidate,
  type MergePlan,
  planMerges,
  type Task,
  VenturiError,
} from "@venturi/core";
import { repeatConflicts } from "./repeat.ts";
import { Turns } from "./turns.ts";

/** A job on its way to the store. */
export interface QueuedJob extends EnqueueJob {
  /** The task whose merge function has still to be asked; the job has a dedup key. */
  readonly task?: Task;
}

/** Jobs that cannot be stored, found before any statement that stores was sent. */
export class CulpritsFound extends Error {
  readonly errors: ReadonlyMap<QueuedJob, unknown>;

  constructor(errors: ReadonlyMap<QueuedJob, unknown>) {
    super(`${errors.size} jobs cannot be merged`);
    this.errors = errors;
  }
}

/** What merging needs of a store. */
export interface MergingPort {
  readonly enqueue: (jobs: readonly EnqueueJob[]) => Promise<readonly EnqueuedJob[]>;
  readonly findCandidates: (
    keys: FindCandidatesRequest["keys"],
    wait: boolean,
  ) => Promise<FindCandidatesResult>;
  readonly logger: Logger;
}

/** How many candidates of a key are read at first. */
const firstLimit = 2;
/** How many times as many are read next where none of them could be decoded. */
const limitGrowth = 16;
/** How long schemas may take to decode candidates, in milliseconds: all merges of the queue wait for them. */
const maxDecidingMs = 5_000;

/**
 * Stores jobs of which some have merge functions to ask: reads what they may be merged with in one statement, decides,
 * and stores everything in another. `previous` is the error of the attempt before, if there was one.
 *
 * Rejects with {@link CulpritsFound} for those that cannot be decided about, and with a retryable `merge` when a
 * pending job has changed between the two statements.
 */
export async function mergeAndSend(
  port: MergingPort,
  jobs: readonly QueuedJob[],
  previous?: unknown,
): Promise<readonly EnqueuedJob[]> {
  const keys = undecidedKeys(jobs);
  if (keys.length === 0) return port.enqueue(jobs);
  const plans = await readAndPlan(port, keys, knownIds(previous), previous !== undefined);
  const errors = new Map<QueuedJob, unknown>();
  const decided = new Map<QueuedJob, EnqueueJob>();
  for (const [index, plan] of plans.entries()) {
    const ofKey = keys[index]?.jobs ?? [];
    for (const [place, job] of ofKey.entries()) {
      const choice = plan.jobs[place];
      if (choice !== undefined) decided.set(job, choice);
      if (plan.failure?.index === place || plan.failure?.index === "any")
        errors.set(job, plan.failure.error);
    }
  }
  if (errors.size > 0) throw new CulpritsFound(errors);
  const stored = await port.enqueue(jobs.map((job) => decided.get(job) ?? job));
  for (const [index, { skipped }] of plans.entries()) {
    if (skipped.length === 0) continue;
    port.logger.warn("pending jobs that the task's schemas refuse were left out of a merge", {
      kind: keys[index]?.kind,
      jobs: skipped,
    });
  }
  return stored;
}

/** How long a merge waits for others of its process, in milliseconds. It is part of the time for which conflicts are repeated. */
const maxTurnMs = 2_000;

/**
 * Once a merge of a key has lost a conflict, the merges of that key take turns within the process, whichever queues and
 * pools they come through: of fifty that race, one would win and all others start over. A merge that keeps losing to other
 * processes keeps its turn, and newcomers wait behind it, so that none starves.
 */
const turns = new Turns(maxTurnMs);

/** The longest delay between two tries of the merge whose turn it is, in milliseconds: it has few rivals, so it comes back soon. */
const maxDelayInTurnMs = 40;

/** As `mergeAndSend`, repeated while conflicts are lost. */
export function mergeUntilSent(
  port: MergingPort,
  jobs: readonly QueuedJob[],
): Promise<readonly EnqueuedJob[]> {
  const names = undecidedKeys(jobs).map(({ kind, dedupKey }) => `${kind}\n${dedupKey}`);
  const startedAt = performance.now();
  const send = (conflict: unknown) => mergeAndSend(port, jobs, conflict);
  return repeatConflicts(
    (conflict) => {
      const lost = isVenturiError(conflict) && conflict.code === "merge";
      if (!lost && !turns.areTaken(names)) return send(conflict);
      return turns.take(names, () =>
        repeatConflicts((latest) => send(latest ?? conflict), {
          startedAt,
          maxDelayMs: maxDelayInTurnMs,
        }),
      );
    },
    // The second attempt waits for its turn, and is repeated there.
    { startedAt, leastAttempts: 2 },
  );
}

interface UndecidedKey {
  readonly kind: string;
  readonly dedupKey: string;
  readonly jobs: QueuedJob[];
}

/** The keys with a job whose merge function has to be asked, each with all of its jobs. */
function undecidedKeys(jobs: readonly QueuedJob[]): UndecidedKey[] {
  const keys = new Map<string, UndecidedKey>();
  for (const job of jobs) {
    const { kind, dedupKey } = job;
    if (dedupKey === undefined || dedupKey === null) continue;
    const name = `${kind}\n${dedupKey}`;
    const known = keys.get(name);
    if (known === undefined) keys.set(name, { kind, dedupKey, jobs: [job] });
    else known.jobs.push(job);
  }
  return [...keys.values()].filter((key) => key.jobs.some(({ task }) => task !== undefined));
}

/** The ids of the call that are repeats, according to the store's last error. */
function knownIds(previous: unknown): ReadonlySet<JobId> {
  return new Set(isVenturiError(previous) && previous.code === "merge" ? previous.ids : []);
}

async function readAndPlan(
  port: MergingPort,
  keys: readonly UndecidedKey[],
  known: ReadonlySet<JobId>,
  wait: boolean,
): Promise<readonly TimedPlan[]> {
  for (let limit = firstLimit; ; limit *= limitGrowth) {
    const found = await port.findCandidates(
      keys.map(({ kind, dedupKey, jobs }) => ({ kind, dedupKey, limit, ...idsToLookUp(jobs) })),
      wait,
    );
    const now = new Date();
    const repeated = new Set([...known, ...(found.known ?? [])]);
    const plans = await Promise.all(
      keys.map((key, index) => planInTime(key, found.candidates[index] ?? [], now, repeated)),
    );
    if (plans.every(({ skipped }) => skipped.length < limit)) return plans;
  }
}

/** The ids of a key's jobs, to be looked up where there are several: a repeat among them changes nothing for those behind it. */
function idsToLookUp(jobs: readonly QueuedJob[]): { readonly ids?: readonly JobId[] } {
  return jobs.length > 1 ? { ids: jobs.map(({ id }) => id) } : {};
}

/** A plan; or a failure of all of its jobs ("any"), where the schemas have not answered in time. */
type TimedPlan =
  | MergePlan
  | (Omit<MergePlan, "failure"> & {
      readonly failure: { readonly index: "any"; readonly error: unknown };
    });

/** A schema that hangs must not hold up everybody's merges. */
async function planInTime(
  { kind, jobs }: UndecidedKey,
  candidates: readonly MergeCandidate[],
  now: Date,
  known: ReadonlySet<JobId>,
): Promise<TimedPlan> {
  const undecided = jobs.map(({ task, ...job }) => ({ job, task }));
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<TimedPlan>((resolve) => {
    const what = `the schemas of ${JSON.stringify(kind)} have not answered within ${maxDecidingMs} ms for a job to merge with; nothing was enqueued`;
    const failure = { index: "any", error: new VenturiError("merge", what) } as const;
    timer = setTimeout(() => resolve({ jobs: [], skipped: [], failure }), maxDecidingMs);
  });
  try {
    return await Promise.race([planMerges(undecided, candidates, { now, known }), late]);
  } finally {
    clearTimeout(timer);
  }
}
