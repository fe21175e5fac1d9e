import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Backoff, retryDelay } from "./backoff.ts";
import { MAX_NOTE_LENGTH } from "./failure-note.ts";
import {
  decideSettlement,
  type RunResult,
  type RunToSettle,
  reachesBackstop,
  type SettlementPolicy,
} from "./settlement.ts";

const jobId = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
const policy: SettlementPolicy = {
  backoff: new Backoff({ base: "1s", cap: "5m" }),
  jitterFraction: 0.5,
  backstop: 20,
};
const completed: RunResult = { type: "completed", note: null };
const failed = {
  type: "failed",
  note: "no luck",
  detail: '{"name":"Error"}',
  permanent: false,
  afterMs: null,
  discardCarry: false,
} as const satisfies RunResult;
const paused = { type: "paused", delayMs: 5_000, runAt: null, note: null } as const;

function run(changes: Partial<RunToSettle> = {}): RunToSettle {
  return {
    jobId,
    runCount: 3,
    failureCount: 2,
    encodeCarry: () => '{"page":2}',
    encodeAttachment: () => '{"seen":true}',
    ...changes,
  };
}

const refuse = (): never => {
  throw new TypeError("cannot be serialized");
};
const mustNotBeAsked = (): never => {
  throw new Error("was asked for");
};

describe("a run that completed", () => {
  it("is written with its note and attachment", () => {
    expect(decideSettlement(run(), { type: "completed", note: "42 rows" }, policy)).toEqual({
      jobId,
      runCount: 3,
      outcome: "completed",
      delayMs: 0,
      runAt: null,
      carry: null,
      note: "42 rows",
      attachment: '{"seen":true}',
      detail: null,
    });
  });

  it("has its carry not looked at", () => {
    const settlement = decideSettlement(run({ encodeCarry: mustNotBeAsked }), completed, policy);
    expect(settlement).toMatchObject({ outcome: "completed", note: null, carry: null });
  });
});

describe("a run that paused", () => {
  it("keeps its carry and counts no failure", () => {
    expect(decideSettlement(run(), { ...paused, note: "page 2" }, policy)).toMatchObject({
      outcome: "paused",
      delayMs: 5_000,
      runAt: null,
      carry: '{"page":2}',
      note: "page 2",
    });
  });

  it("can name the moment instead of a delay", () => {
    const settlement = decideSettlement(run(), { ...paused, delayMs: 0, runAt: 9_999 }, policy);
    expect(settlement).toMatchObject({ outcome: "paused", delayMs: 0, runAt: 9_999 });
  });

  it("leaves the stored carry alone when there is none to store", () => {
    const settlement = decideSettlement(run({ encodeCarry: () => null }), paused, policy);
    expect(settlement).toMatchObject({ outcome: "paused", carry: null });
  });

  it("is dead when its carry cannot be serialized", () => {
    const settlement = decideSettlement(run({ encodeCarry: refuse }), paused, policy);
    expect(settlement).toMatchObject({
      outcome: "dead",
      note: "carry could not be serialized",
      carry: null,
      delayMs: 0,
    });
  });

  it("is not killed by the backstop, however often it failed before", () => {
    const settlement = decideSettlement(run({ failureCount: 500 }), paused, policy);
    expect(settlement.outcome).toBe("paused");
  });
});

describe("a run that failed", () => {
  it("is retried after its backoff, this failure counted, with carry and detail", () => {
    expect(decideSettlement(run(), failed, policy)).toMatchObject({
      outcome: "retried",
      // Attempt 3 of this id, one second as base, half of it jitter.
      delayMs: 877,
      carry: '{"page":2}',
      note: "no luck",
      detail: '{"name":"Error"}',
    });
  });

  it("is retried at once after the first two failures", () => {
    for (const failureCount of [0, 1])
      expect(decideSettlement(run({ failureCount }), failed, policy).delayMs).toBe(0);
  });

  it("waits as long as the handler said instead", () => {
    expect(decideSettlement(run(), { ...failed, afterMs: 7 }, policy).delayMs).toBe(7);
    expect(decideSettlement(run(), { ...failed, afterMs: 0 }, policy).delayMs).toBe(0);
  });

  it("is dead when this failure reaches the backstop, and keeps what carry is stored", () => {
    const last = run({ failureCount: 19, encodeCarry: mustNotBeAsked });
    expect(decideSettlement(last, failed, policy)).toMatchObject({
      outcome: "dead",
      carry: null,
      note: "no luck",
      detail: '{"name":"Error"}',
      delayMs: 0,
    });
    expect(decideSettlement(run({ failureCount: 18 }), failed, policy).outcome).toBe("retried");
  });

  it("is dead at the backstop also when the handler named a delay", () => {
    const last = run({ failureCount: 19 });
    expect(decideSettlement(last, { ...failed, afterMs: 5 }, policy).outcome).toBe("dead");
  });

  it("is never dead without a backstop", () => {
    const endless = { ...policy, backstop: null };
    const settlement = decideSettlement(run({ failureCount: 1_000_000 }), failed, endless);
    expect(settlement.outcome).toBe("retried");
  });

  it("is dead at once when it is permanent, without a backstop too", () => {
    const settlement = decideSettlement(
      run({ failureCount: 0 }),
      { ...failed, permanent: true },
      { ...policy, backstop: null },
    );
    expect(settlement).toMatchObject({ outcome: "dead", note: "no luck" });
  });

  it("discards its changes to carry after a defect", () => {
    const settlement = decideSettlement(
      run({ encodeCarry: mustNotBeAsked }),
      { ...failed, discardCarry: true },
      policy,
    );
    expect(settlement).toMatchObject({ outcome: "retried", carry: null, note: "no luck" });
  });

  it("is dead when its carry cannot be serialized, and says both", () => {
    const settlement = decideSettlement(run({ encodeCarry: refuse }), failed, policy);
    expect(settlement).toMatchObject({
      outcome: "dead",
      note: "carry could not be serialized; no luck",
      detail: '{"name":"Error"}',
    });
  });

  it("says both within the limit of a note, however long its own is", () => {
    const note = "x".repeat(MAX_NOTE_LENGTH);
    const long = decideSettlement(run({ encodeCarry: refuse }), { ...failed, note }, policy);
    expect(long.note).toMatch(/^carry could not be serialized; x+…$/);
    expect(long.note).toHaveLength(MAX_NOTE_LENGTH);
  });
});

describe("a run that was released", () => {
  it("leaves the carry as stored and is due at once", () => {
    const result: RunResult = { type: "released", note: "shutting down" };
    const settlement = decideSettlement(run({ encodeCarry: mustNotBeAsked }), result, policy);
    expect(settlement).toMatchObject({
      outcome: "released",
      carry: null,
      delayMs: 0,
      note: "shutting down",
    });
  });
});

describe("an attachment that cannot be serialized", () => {
  it.each<[string, RunResult, string, string]>([
    ["completed", completed, "completed", "attachment could not be serialized"],
    [
      "completed with a note",
      { type: "completed", note: "42 rows" },
      "completed",
      "42 rows; attachment could not be serialized",
    ],
    ["paused", paused, "paused", "attachment could not be serialized"],
    ["failed", failed, "retried", "no luck; attachment could not be serialized"],
    [
      "released",
      { type: "released", note: null },
      "released",
      "attachment could not be serialized",
    ],
  ])(
    "is dropped from a run that %s: the outcome stays, the note says so",
    (_, result, outcome, note) => {
      const settlement = decideSettlement(run({ encodeAttachment: refuse }), result, policy);
      expect(settlement).toMatchObject({ outcome, note, attachment: null });
    },
  );

  it("is named beside a carry that cannot be serialized either", () => {
    const nothing = run({ encodeCarry: refuse, encodeAttachment: refuse });
    expect(decideSettlement(nothing, paused, policy)).toMatchObject({
      outcome: "dead",
      note: "carry could not be serialized; attachment could not be serialized",
    });
  });

  it("is named in a note that is as long as notes may be, which stays within its limit", () => {
    const note = "x".repeat(MAX_NOTE_LENGTH);
    const settlement = decideSettlement(
      run({ encodeAttachment: refuse }),
      { ...failed, note },
      policy,
    );
    expect(settlement.note).toMatch(/^x+…; attachment could not be serialized$/);
    expect(settlement.note).toHaveLength(MAX_NOTE_LENGTH);
  });
});

describe("whatever a run came to", () => {
  const anyNote = fc.option(fc.string({ maxLength: MAX_NOTE_LENGTH }));
  const anyResult: fc.Arbitrary<RunResult> = fc.oneof(
    fc.record({ type: fc.constant("completed" as const), note: anyNote }),
    fc.record({ type: fc.constant("released" as const), note: anyNote }),
    fc.record({
      type: fc.constant("paused" as const),
      delayMs: fc.nat(),
      runAt: fc.option(fc.nat()),
      note: anyNote,
    }),
    fc.record({
      type: fc.constant("failed" as const),
      note: fc.string({ minLength: 1, maxLength: MAX_NOTE_LENGTH }),
      detail: fc.constant(null),
      permanent: fc.boolean(),
      afterMs: fc.option(fc.nat()),
      discardCarry: fc.boolean(),
    }),
  );
  const anyRun = fc.record({
    failureCount: fc.nat(100),
    encodeCarry: fc.constantFrom(() => "1", refuse),
    encodeAttachment: fc.constantFrom(() => "1", refuse),
  });
  const anyPolicy = fc.record({
    backoff: fc.constant(policy.backoff),
    jitterFraction: fc.double({ min: 0, max: 1, noNaN: true }),
    backstop: fc.option(fc.integer({ min: 1, max: 100 })),
  });

  it("it is settled, for this run, with a note that can be stored, and only a wait has a delay", () => {
    fc.assert(
      fc.property(anyRun, anyResult, anyPolicy, (changes, result, anyPolicyOf) => {
        const settlement = decideSettlement(run(changes), result, anyPolicyOf);
        expect(settlement).toMatchObject({ jobId, runCount: 3 });
        expect(settlement.note?.length ?? 0).toBeLessThanOrEqual(MAX_NOTE_LENGTH);
        if (!["paused", "retried"].includes(settlement.outcome)) {
          expect(settlement).toMatchObject({ delayMs: 0, runAt: null, carry: null });
        }
        if (result.type === "failed") expect(settlement.note).not.toBe("");
      }),
    );
  });

  it("a failure is retried below the backstop, after the very delay that its backoff gives", () => {
    fc.assert(
      fc.property(fc.nat(60), anyPolicy, (failureCount, anyPolicyOf) => {
        const settlement = decideSettlement(run({ failureCount }), failed, anyPolicyOf);
        const { backoff, jitterFraction, backstop } = anyPolicyOf;
        if (backstop !== null && failureCount + 1 >= backstop) {
          expect(settlement.outcome).toBe("dead");
        } else {
          const delayMs = retryDelay(backoff, jitterFraction, failureCount + 1, jobId);
          expect(settlement).toMatchObject({ outcome: "retried", delayMs });
        }
      }),
    );
  });

  it("the attachment is asked for once, the carry at most once", () => {
    fc.assert(
      fc.property(anyResult, (result) => {
        const asked = { carry: 0, attachment: 0 };
        decideSettlement(
          run({
            encodeCarry: () => {
              asked.carry += 1;
              return null;
            },
            encodeAttachment: () => {
              asked.attachment += 1;
              return null;
            },
          }),
          result,
          policy,
        );
        expect(asked.attachment).toBe(1);
        expect(asked.carry).toBeLessThanOrEqual(1);
      }),
    );
  });
});

describe("the backstop", () => {
  it("is reached by the failure that makes its number", () => {
    expect([1, 2, 3, 4].map((failures) => reachesBackstop(failures, 3))).toEqual([
      false,
      false,
      true,
      true,
    ]);
  });

  it("is never reached when it is null", () => {
    expect(reachesBackstop(2_147_483_647, null)).toBe(false);
  });
});
