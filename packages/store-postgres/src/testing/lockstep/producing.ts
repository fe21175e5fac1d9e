import type { EnqueueJob, MergeChoice } from "@venturi/core";
import fc from "fast-check";
import { Command } from "./command.ts";
import type { Model } from "./model.ts";
import type { Pair } from "./pair.ts";

export const kinds = ["a", "b"];
export const keys = ["", "k"];
const anyKind = fc.constantFrom(...kinds);
const anyPriority = fc.constantFrom("high", "normal", "low");
/** Mostly null. */
export function rarely<T>(some: fc.Arbitrary<T>): fc.Arbitrary<T | null> {
  return fc.oneof({ weight: 7, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: some });
}

export const anyJson = fc.oneof(
  fc.integer({ min: -9, max: 9 }).map(String),
  fc.constantFrom('{"b":1,"aa":2,"a":[null,{"z":0,"y":1}]}', '"text"', '{"a":1,"a":2}', "null"),
);

interface JobDraft {
  readonly kind: string;
  readonly payload: string;
  readonly priority: EnqueueJob["priority"];
  readonly dedupKey: string | null;
  readonly merge: NonNullable<EnqueueJob["merge"]>;
  /** Null: at once. */
  readonly seconds: number | null;
  readonly absolute: boolean;
  readonly leaseMs: number | null;
  readonly headers: Readonly<Record<string, string>> | null;
  /** The id of an earlier job of the scenario; null: a new one. */
  readonly repeated: number | null;
}

const anyDraft: fc.Arbitrary<JobDraft> = fc.record({
  kind: anyKind,
  payload: anyJson,
  priority: anyPriority,
  dedupKey: fc.option(fc.constantFrom(...keys), { freq: 1 }),
  merge: fc.constantFrom("keep", "replace", "independent"),
  seconds: fc.option(fc.integer({ min: -2, max: 20 }), { freq: 1 }),
  absolute: fc.boolean(),
  leaseMs: fc.option(fc.integer({ min: 1, max: 20 }).map((n) => n * 1_000)),
  headers: fc.option(fc.constantFrom({ h: "1" }, { h: "2", ä: "" })),
  repeated: rarely(fc.nat(50)),
});

function toJob(draft: JobDraft, model: Model, pair: Pair): EnqueueJob {
  const { seconds, absolute, repeated, ...job } = draft;
  const id = (repeated === null ? undefined : model.id(repeated)) ?? model.newId();
  if (seconds === null) return { ...job, id };
  const span = seconds > 0 ? model.span(seconds) : seconds * 1_000;
  return absolute ? { ...job, id, runAt: pair.now() + span } : { ...job, id, delayMs: span };
}

class Enqueue extends Command {
  readonly drafts: readonly JobDraft[];

  constructor(drafts: readonly JobDraft[]) {
    super("enqueue", drafts);
    this.drafts = drafts;
  }

  protected async apply(model: Model, pair: Pair): Promise<void> {
    const jobs = this.drafts.map((draft) => toJob(draft, model, pair));
    await pair.both(
      "enqueue",
      (store) => store.enqueue({ jobs }),
      ({ jobs: answers }) => answers,
    );
  }
}

interface MergeDraft {
  readonly job: JobDraft;
  readonly dedupKey: string;
  readonly action: "keep" | "replace" | "with" | "insert" | "independent";
  readonly candidate: number;
  /** Wrong by this much, as if the candidate had changed in between. */
  readonly stale: number;
  readonly carry: string | null;
  readonly seconds: number | null;
  readonly priority: EnqueueJob["priority"] | null;
  /** How many of the candidates could not be decoded. */
  readonly skipped: number;
}

const anyMerge: fc.Arbitrary<MergeDraft> = fc.record({
  job: anyDraft.map((draft) => ({ ...draft, repeated: null })),
  dedupKey: fc.constantFrom(...keys),
  action: fc.constantFrom("keep", "replace", "with", "with", "insert", "independent"),
  candidate: fc.nat(2),
  stale: fc.constantFrom(0, 0, 0, 0, 1),
  carry: fc.option(anyJson),
  seconds: fc.option(fc.integer({ min: -2, max: 20 })),
  priority: fc.option(anyPriority),
  skipped: fc.nat(3),
});

/** What a producer does for a merge function: reads the candidates, decides, enqueues with the decision. */
class Merge extends Command {
  readonly draft: MergeDraft;

  constructor(draft: MergeDraft) {
    super("merge", draft);
    this.draft = draft;
  }

  protected async apply(model: Model, pair: Pair): Promise<void> {
    const { draft } = this;
    const { dedupKey } = draft;
    const job = { ...toJob(draft.job, model, pair), dedupKey };
    const found = await pair.both(
      "findCandidates",
      (store) => store.findCandidates({ keys: [{ kind: job.kind, dedupKey }] }),
      ({ candidates }) => candidates,
    );
    const candidates = found?.candidates[0] ?? [];
    const candidate = candidates[draft.candidate % Math.max(1, candidates.length)];
    const decision = this.#decide(model, pair, candidates, candidate);
    await pair.both(
      "enqueue with a decision",
      (store) => store.enqueue({ jobs: [{ ...job, decision }] }),
      ({ jobs }) => jobs,
    );
  }

  #decide(
    model: Model,
    pair: Pair,
    candidates: readonly { readonly id: string }[],
    candidate:
      | { readonly id: string; readonly version: number; readonly runCount: number }
      | undefined,
  ): MergeChoice {
    const { action, stale, skipped, carry, seconds, priority, job } = this.draft;
    if (action === "independent") return { action };
    if (candidate === undefined || action === "insert")
      return { action: "insert", skipped: candidates.slice(0, skipped).map(({ id }) => id) };
    const chosen = {
      candidate: candidate.id,
      version: candidate.version + stale,
      runCount: candidate.runCount,
    };
    if (action !== "with") return { action, ...chosen };
    return {
      action,
      ...chosen,
      payload: job.payload,
      ...(carry === null ? {} : { carry }),
      ...(seconds === null
        ? {}
        : { visibleAt: pair.now() + (seconds > 0 ? model.span(seconds) : seconds * 1_000) }),
      ...(priority === null ? {} : { priority }),
    };
  }
}

export const producing = {
  enqueue: fc
    .array(anyDraft, { minLength: 1, maxLength: 5 })
    .map((drafts): Command => new Enqueue(drafts)),
  merge: anyMerge.map((draft): Command => new Merge(draft)),
};
