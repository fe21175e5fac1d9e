import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Backoff, retryDelay } from "./backoff.ts";
import { decideRecovery, type StaleClaim } from "./recovery.ts";

const backoff = new Backoff({ base: "1s", cap: "5m" });

function staleClaim(changes: Partial<StaleClaim> = {}): StaleClaim {
  return {
    jobId: "01ARZ3NDEKTSV4RRFFQ69G5FAV",
    kind: "a",
    payload: "{}",
    runCount: 7,
    failureCount: 2,
    backstop: 20,
    holder: 12,
    overdue: true,
    ...changes,
  };
}

describe("the recovery of a stale claim", () => {
  it("counts as a failed run, with the backoff that a failure would have had", () => {
    expect(decideRecovery(staleClaim(), backoff, 0.5)).toEqual({
      jobId: "01ARZ3NDEKTSV4RRFFQ69G5FAV",
      runCount: 7,
      holder: 12,
      outcome: "stale-recovered",
      // Attempt 3 of this id.
      delayMs: 877,
      note: "run 7 was lost: its lease ended before it settled",
    });
  });

  it("says that the worker went silent where the lease had not ended", () => {
    expect(decideRecovery(staleClaim({ overdue: false }), backoff, 0.5).note).toBe(
      "run 7 was lost: its worker stopped beating",
    );
  });

  it("is at once after the first two failures", () => {
    for (const failureCount of [0, 1])
      expect(decideRecovery(staleClaim({ failureCount }), backoff, 0.5).delayMs).toBe(0);
  });

  it("buries the job at the backstop that the claim carried, and says why", () => {
    const third = staleClaim({ failureCount: 2, backstop: 3 });
    expect(decideRecovery(third, backoff, 0.5)).toMatchObject({
      outcome: "dead",
      delayMs: 0,
      note: "run 7 was lost: its lease ended before it settled; failure 3 reaches the backstop of 3",
    });
  });

  it("never buries it where the claim carried no backstop", () => {
    const claim = staleClaim({ failureCount: 1_000_000, backstop: null });
    expect(decideRecovery(claim, backoff, 0).outcome).toBe("stale-recovered");
  });

  it("is fenced by job, holder and run, whatever the rest", () => {
    fc.assert(
      fc.property(
        fc.nat(100),
        fc.option(fc.integer({ min: 1, max: 100 })),
        fc.boolean(),
        fc.integer({ min: 1, max: 1_000 }),
        fc.integer({ min: 1, max: 1_000 }),
        (failureCount, backstop, overdue, runCount, holder) => {
          const claim = staleClaim({ failureCount, backstop, overdue, runCount, holder });
          const recovery = decideRecovery(claim, backoff, 0.5);
          expect(recovery).toMatchObject({ jobId: claim.jobId, runCount, holder });
          if (backstop !== null && failureCount + 1 >= backstop) {
            expect(recovery).toMatchObject({ outcome: "dead", delayMs: 0 });
          } else {
            const delayMs = retryDelay(backoff, 0.5, failureCount + 1, claim.jobId);
            expect(recovery).toMatchObject({ outcome: "stale-recovered", delayMs });
          }
        },
      ),
    );
  });
});
