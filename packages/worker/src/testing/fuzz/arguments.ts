import {
  Backoff,
  cleanText,
  decideRecovery,
  decideSettlement,
  defineTask,
  describeFailure,
  encodeDedupKey,
  encodeJson,
  isJobId,
  isVenturiError,
  MAX_NOTE_LENGTH,
  Merge,
  Outcome,
  planMerges,
  readDatabaseFault,
  resolveCleanupFilter,
  resolveJobFilter,
  resolveNames,
  retryDelay,
  TaskError,
  toDatabaseError,
  toHeaders,
  toKind,
  unstorableText,
} from "@venturi/core";
import { Queue } from "@venturi/queue";
import { MemoryStore } from "@venturi/testing";
import fc from "fast-check";
import * as v from "valibot";
import { resolveWorkerOptions } from "../../options.ts";
import { resultOfReturn, resultOfThrow } from "../../run-result.ts";
import { anything, json, members, number, open, secret, text } from "./values.ts";

/** Something that takes what a caller or a handler gives it. */
interface Target {
  readonly name: string;
  readonly inputs: fc.Arbitrary<unknown>;
  /** Throws, if anything, a `VenturiError`; what it returns is looked at too. */
  readonly take: (input: never) => unknown;
  /** Whether it must never throw, whatever it is given. */
  readonly isTotal?: boolean;
}

const id = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
const duration = fc.oneof(number, fc.constantFrom("1s", "5m", "0.5h", "5 parsecs", "-5m", "1e9d"));
const moment = fc.oneof(
  fc.date({ noInvalidDate: false }),
  number.map((epochMilliseconds) => ({ epochMilliseconds })),
);
const priority = fc.constantFrom("high", "normal", "low");
const enqueueOptions = members({
  delay: duration,
  runAt: moment,
  priority,
  headers: fc.dictionary(text, text),
  id: fc.constantFrom(id, id.toLowerCase(), "", text),
  signal: fc.constant(undefined),
});

const Loose = defineTask({ kind: "loose", payload: v.unknown(), dedupKey: (p) => p as string });
const Strict = defineTask({
  kind: "strict",
  payload: v.object({ n: v.number(), list: v.optional(v.array(v.string()), []) }),
  carry: v.optional(v.object({ page: v.number() }), { page: 0 }),
});

const store = new MemoryStore();
const queue = new Queue(store);
const settling = {
  jobId: id,
  runCount: 1,
  failureCount: 0,
  encodeAttachment: () => null,
  encodeCarry: () => null,
};
const policy = { backoff: new Backoff(), jitterFraction: 0.5, backstop: 20 };

/** An outcome, error or decision that somebody has put together by hand. */
const forged = (brand: string, right: Readonly<Record<string, fc.Arbitrary<unknown>>>) =>
  members(right).map((some) => Object.assign(some, { [Symbol.for(brand)]: true }));

const outcome = fc.oneof(
  anything,
  forged("venturi.outcome", {
    type: fc.constantFrom("completed", "paused"),
    note: fc.option(text),
    delayMs: number,
    runAt: fc.option(number),
  }),
);
const thrown = fc.oneof(
  anything,
  forged("venturi.task-error", { permanent: fc.boolean(), afterMs: number, message: text }),
  members({ name: text, message: text, code: text, stack: text, cause: anything }),
  text.map((message) => new Error(message)),
);

const targets: readonly Target[] = [
  {
    name: "encodeJson",
    inputs: fc.oneof(anything, json),
    take: (value: unknown) => {
      const written = encodeJson(value, "payload", "k");
      const problem = unstorableText(JSON.stringify(JSON.parse(written)));
      if (problem !== null || encodeJson(JSON.parse(written), "payload") !== written)
        throw new Error("what was written is not what would be read");
    },
  },
  {
    name: "prepare",
    inputs: fc.oneof(anything, json, members({ n: number, list: fc.array(text) })),
    take: (value: unknown) => Strict.prepare(value),
  },
  {
    name: "enqueue",
    inputs: fc.tuple(fc.oneof(text, number, anything), enqueueOptions),
    take: ([payload, options]: [unknown, object]) => queue.enqueue(Loose(payload), options),
  },
  {
    name: "enqueueMany",
    inputs: fc.oneof(
      anything,
      fc.array(
        fc.oneof(
          anything,
          enqueueOptions.map((options) => ({ ...options, job: Strict({ n: 1 }) })),
        ),
      ),
    ),
    take: (items: never) => queue.enqueueMany(items),
  },
  {
    name: "jobs",
    inputs: members({
      status: fc.constantFrom("pending", "dead", ["completed"], []),
      kind: fc.oneof(text, fc.array(text)),
      ids: fc.array(fc.constantFrom(id, "x")),
      finishedSince: moment,
      finishedUntil: moment,
      limit: number,
      cursor: fc.oneof(text, fc.constant(`1.${id}`)),
    }),
    take: (filter: object) => resolveJobFilter(filter),
  },
  {
    name: "cleanup",
    inputs: fc.oneof(
      anything,
      members({ finishedBefore: moment, kind: text, status: fc.constantFrom("dead", "pending") }),
    ),
    take: (filter: never) => resolveCleanupFilter(filter),
  },
  {
    name: "defineTask",
    inputs: fc.oneof(
      anything,
      members({
        kind: text,
        payload: fc.constant(v.any()),
        carry: fc.constant(v.optional(v.number(), 0)),
        priority,
        dedupKey: fc.constant(() => "k"),
        merge: fc.constantFrom("keep", "replace", "independent", () => Merge.keep()),
        lease: duration,
        backstop: number,
      }),
    ),
    take: (spec: never) => defineTask(spec),
  },
  {
    name: "task callbacks",
    inputs: fc.tuple(anything, anything, anything),
    take: ([one, two, three]: unknown[]) =>
      defineTask({
        kind: "k",
        payload: v.any(),
        dedupKey: () => one as string,
        lease: () => two as number,
        priority: () => three as "low",
      }).prepare(1),
  },
  {
    name: "schema answers",
    inputs: fc.oneof(
      anything,
      members({ value: anything, issues: fc.array(members({ message: text, path: anything })) }),
    ),
    take: (answer: never) =>
      defineTask({
        kind: "k",
        payload: { "~standard": { version: 1, vendor: "fuzz", validate: () => answer } },
      }).prepare(1),
  },
  {
    name: "merge functions",
    inputs: fc.oneof(
      anything,
      forged("venturi.decision", {
        decision: fc.constantFrom("keep", "replace", "independent", "with"),
        payload: fc.oneof(json, anything),
        carry: anything,
        visibleAt: moment,
        priority,
      }),
    ),
    take: async (decision: never) => {
      const task = defineTask({
        kind: "k",
        payload: v.unknown(),
        dedupKey: () => "k",
        merge: () => decision,
      });
      const job = { id, kind: "k", payload: "1", priority: "normal", dedupKey: "k" } as const;
      const candidate = {
        ...{ id: `${id.slice(0, -1)}W`, version: 2 ** 31 - 1, runCount: 0, failureCount: 0 },
        priority: "low" as const,
        ...{ visibleAt: new Date(), payload: "2", carry: null, journal: [] },
      } as const;
      const { failure } = await planMerges([{ job, task }], [candidate], { now: new Date() });
      if (failure !== null) throw failure.error;
    },
  },
  { name: "dedup keys", inputs: anything, take: (key: unknown) => encodeDedupKey(key, "k") },
  { name: "kinds", inputs: anything, take: (kind: never) => toKind(kind, "kind") },
  { name: "headers", inputs: anything, take: (headers: unknown) => toHeaders(headers) },
  {
    name: "names",
    inputs: members({ prefix: text, schema: text }),
    take: (names: object) => resolveNames(names),
  },
  {
    name: "worker options",
    inputs: members({
      concurrency: number,
      pollMax: duration,
      lease: duration,
      heartbeat: duration,
      workerTimeout: duration,
      shutdownTimeout: duration,
      jitterFraction: number,
      backstop: number,
      priorityRatio: number,
      prefetch: number,
      name: text,
      panicPolicy: fc.constantFrom("retry", "dead"),
    }),
    take: (options: object) => resolveWorkerOptions(options),
  },
  {
    name: "backoffs",
    inputs: fc.tuple(members({ base: duration, cap: duration }), number, number),
    take: ([options, fraction, attempt]: [object, number, number]) => {
      const delay = retryDelay(new Backoff(options), fraction, attempt, id);
      if (!(delay >= 0)) throw new Error(`waits ${delay}`);
    },
  },
  {
    name: "pauses",
    inputs: fc.tuple(fc.oneof(anything, duration), anything),
    take: ([pause, note]: [never, never]) => {
      Outcome.completed(note);
      Outcome.pauseFor(pause, note);
    },
  },
  {
    name: "moments",
    inputs: fc.oneof(anything, moment),
    take: (at: never) => Outcome.pauseUntil(at),
  },
  {
    name: "task errors",
    inputs: fc.tuple(anything, fc.oneof(anything, members({ after: duration }))),
    take: ([error, options]: [unknown, never]) => {
      TaskError.retry(error, options);
    },
  },
  {
    name: "what handlers return",
    inputs: outcome,
    isTotal: true,
    take: (returned: unknown) => {
      const result = resultOfReturn(returned);
      if (result !== null) settle(result);
    },
  },
  {
    name: "what handlers throw",
    inputs: thrown,
    isTotal: true,
    take: (error: unknown) => {
      const { note } = describeFailure(error);
      if (note.trim() === "" || note.length > MAX_NOTE_LENGTH || unstorableText(note) !== null)
        throw new Error("the note cannot be stored");
      settle(resultOfThrow(error, "retry"));
    },
  },
  {
    name: "counts of a claim",
    inputs: fc.tuple(fc.integer(), fc.integer(), fc.option(fc.integer())),
    isTotal: true,
    take: ([runCount, failureCount, backstop]: [number, number, number | null]) => {
      const claim = { jobId: id, kind: "k", payload: "", holder: 1, overdue: true };
      decideRecovery({ ...claim, runCount, failureCount, backstop }, new Backoff(), 0.5);
      decideSettlement({ ...settling, runCount, failureCount }, resultOfThrow(0, "retry"), policy);
    },
  },
  {
    name: "errors of drivers",
    inputs: fc.oneof(
      anything,
      members({ code: text, message: text, severity: text, errno: number, errors: anything }),
      text.map((message) => new Error(`postgres://ann:${secret}@host/db ${message}`)),
    ),
    isTotal: true,
    take: (error: unknown) => {
      readDatabaseFault(error);
      const { message } = toDatabaseError(error, { doing: "fuzz", prefix: "venturi" });
      if (isVenturiError(error)) return;
      if (message.includes(secret) || message.length > 2_000) throw new Error("tells too much");
    },
  },
  {
    name: "text to clean",
    inputs: fc.tuple(text, fc.integer({ min: 1, max: 60 })),
    isTotal: true,
    take: ([some, limit]: [string, number]) => {
      const clean = cleanText(some, limit);
      if (clean.length > limit || unstorableText(clean) !== null) throw new Error("is not clean");
    },
  },
  {
    name: "ids",
    inputs: fc.oneof(anything, text),
    isTotal: true,
    take: (value: unknown) => isJobId(value),
  },
];

function settle(result: Parameters<typeof decideSettlement>[1]): void {
  const { note, delayMs, runAt } = decideSettlement(settling, result, policy);
  const isTimely = delayMs >= 0 && (runAt === null || runAt >= 0);
  if (!isTimely || (note !== null && unstorableText(note) !== null))
    throw new Error("the settlement cannot be stored");
}

/** Gives a target one input; returns what is wrong with how it took it, or null. */
async function wrongWith({ take, isTotal }: Target, input: unknown): Promise<string | null> {
  try {
    await (take as (value: unknown) => unknown)(open(input));
    return null;
  } catch (error) {
    if (!isVenturiError(error)) return `threw something of its own: ${describeFailure(error).note}`;
    if (isTotal) return `threw: ${error.message}`;
    return error.message.includes(secret) ? "told the payload" : null;
  }
}

/** Gives every target its share of inputs; throws for the first that was taken badly, made as small as it gets. */
export async function fuzzArguments(inputs: number, seed: number): Promise<number> {
  const share = Math.ceil(inputs / targets.length);
  for (const target of targets) {
    await fc.assert(
      fc.asyncProperty(target.inputs, async (input) => {
        const wrong = await wrongWith(target, input);
        if (wrong !== null) throw new Error(`${target.name} ${wrong}`);
      }),
      { numRuns: share, seed, endOnFailure: share > 10_000 },
    );
    // What the store in memory was given is not looked at again.
    await queue.cleanup({ finishedBefore: new Date(8.64e15) });
    const { jobs } = await queue.jobs({ limit: 1_000 });
    for (const job of jobs) await queue.cancel(job.id);
  }
  return share * targets.length;
}
