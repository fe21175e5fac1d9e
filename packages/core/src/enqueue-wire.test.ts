import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FAR_FUTURE_MS } from "./duration.ts";
import { decodeEnqueued, encodeEnqueue, enqueueCall } from "./enqueue-wire.ts";
import { toHeaders } from "./headers.ts";
import { fromUuid, toUuid } from "./job-id.ts";
import type { MergeChoice } from "./merge-plan.ts";
import type { EnqueueJob } from "./store.ts";

const id = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

function job(changes: Partial<EnqueueJob> = {}): EnqueueJob {
  return { id, kind: "a", payload: '{"n":1}', priority: "normal", ...changes };
}

/** What the database will read. */
function decoded(...jobs: readonly EnqueueJob[]): Record<string, unknown>[] {
  return JSON.parse(encodeEnqueue(jobs));
}

describe("what producers send", () => {
  it("is no more than what a job says", () => {
    expect(encodeEnqueue([job()])).toBe(
      '[{"id":"01563e3a-b5d3-d676-4c61-efb99302bd5b","kind":"a","payload":{"n":1}}]',
    );
    expect(decoded(job({ dedupKey: null, leaseMs: null, headers: null }))).toEqual(decoded(job()));
  });

  it("is everything that a job says", () => {
    const headers = toHeaders({ trace: "00-1", 'quo"te': "a\\b" });
    expect(
      decoded(job({ priority: "high", dedupKey: "k", merge: "keep", leaseMs: 60_000, headers })),
    ).toEqual([
      {
        id: toUuid(id),
        kind: "a",
        payload: { n: 1 },
        priority: "high",
        dedup_key: "k",
        merge: "keep",
        lease_ms: 60_000,
        headers: { trace: "00-1", 'quo"te': "a\\b" },
      },
    ]);
  });

  it("holds what a merge function has decided", () => {
    const decision = (choice: MergeChoice) => decoded(job({ decision: choice }))[0]?.["decision"];
    const chosen = { candidate: id, version: 3, runCount: 2 } as const;
    const told = { candidate: toUuid(id), version: 3, run_count: 2 };
    expect(decision({ action: "independent" })).toEqual({ action: "independent" });
    expect(decision({ action: "insert", skipped: [id] })).toEqual({
      action: "insert",
      skipped: [toUuid(id)],
    });
    for (const action of ["keep", "replace"] as const)
      expect(decision({ action, ...chosen })).toEqual({ action, ...told });
    expect(decision({ action: "with", ...chosen, payload: '{"n":2}' })).toEqual({
      ...{ action: "with", ...told },
      payload: { n: 2 },
    });
    expect(
      decision({
        ...{ action: "with", ...chosen, payload: '{"n":2}' },
        carry: '{"m":1}',
        visibleAt: 86_400_000,
        priority: "low",
      }),
    ).toEqual({
      ...{ action: "with", ...told, payload: { n: 2 } },
      carry: { m: 1 },
      visible_at: "1970-01-02T00:00:00.000Z",
      priority: "low",
    });
  });

  it("merges by replacing unless the job says otherwise", () => {
    expect(decoded(job({ dedupKey: "k" }))[0]).toMatchObject({ merge: "replace" });
  });

  it("holds the empty key, which is a key", () => {
    expect(decoded(job({ dedupKey: "" }))[0]).toMatchObject({ dedup_key: "", merge: "replace" });
  });

  it("says that it has no key where its id may be under way, so that the wait for that one is bounded", () => {
    expect(decoded(job({ repeatable: true }))).toEqual([{ ...decoded(job())[0], dedup_key: null }]);
    const keyed = job({ repeatable: true, dedupKey: "k" });
    expect(decoded(keyed)).toEqual(decoded(job({ dedupKey: "k" })));
  });

  it("holds a delay of zero, and a moment as text that no time zone can move", () => {
    expect(decoded(job({ delayMs: 0 }))[0]).toMatchObject({ delay_ms: 0 });
    expect(decoded(job({ runAt: 1_000 }))[0]).toMatchObject({ run_at: "1970-01-01T00:00:01.000Z" });
    expect(decoded(job({ runAt: -5 }))[0]).toMatchObject({ run_at: "1970-01-01T00:00:00.000Z" });
    expect(decoded(job({ runAt: FAR_FUTURE_MS }))[0]).toMatchObject({
      run_at: "9999-01-01T00:00:00.000Z",
    });
  });

  it("holds headers whose names are those of object members", () => {
    const headers = toHeaders(JSON.parse('{"__proto__":"a","constructor":"b"}'));
    expect(encodeEnqueue([job({ headers })])).toContain(
      '"headers":{"__proto__":"a","constructor":"b"}',
    );
  });

  it("has the payload's own text, number for number", () => {
    const payload = '[1e400, 9007199254740993,"\\u0041"]';
    expect(encodeEnqueue([job({ payload })])).toContain(`"payload":${payload}}`);
  });

  it("is an empty array for no job", () => {
    expect(encodeEnqueue([])).toBe("[]");
  });

  it("says, for any jobs in any number, exactly what they say, in their order", () => {
    const anyText = fc.string({ unit: "binary", maxLength: 8 });
    const anyJob: fc.Arbitrary<EnqueueJob> = fc.record(
      {
        id: fc.uuid().map(fromUuid),
        kind: anyText,
        payload: fc.jsonValue({ maxDepth: 2 }).map((value) => JSON.stringify(value)),
        priority: fc.constantFrom("high", "normal", "low"),
        dedupKey: fc.option(anyText),
        merge: fc.constantFrom("keep", "replace", "independent"),
        delayMs: fc.nat(),
        leaseMs: fc.option(fc.nat()),
        headers: fc.option(fc.dictionary(anyText, anyText)),
      },
      { requiredKeys: ["id", "kind", "payload", "priority"] },
    );
    fc.assert(
      fc.property(fc.array(anyJob, { maxLength: 5 }), (jobs) => {
        expect(decoded(...jobs)).toEqual(
          jobs.map(({ priority, dedupKey = null, merge = "replace", ...rest }) => ({
            id: toUuid(rest.id),
            kind: rest.kind,
            payload: JSON.parse(rest.payload),
            ...(priority !== "normal" && { priority }),
            ...(dedupKey !== null && { dedup_key: dedupKey, merge }),
            ...(rest.delayMs !== undefined && { delay_ms: rest.delayMs }),
            ...((rest.leaseMs ?? null) !== null && { lease_ms: rest.leaseMs }),
            ...((rest.headers ?? null) !== null && { headers: { ...rest.headers } }),
          })),
        );
      }),
    );
  });
});

describe("the answer to the call", () => {
  const ids = ["01ARZ3NDEKTSV4RRFFQ69G5FAV", "01ARZ3NDEKTSV4RRFFQ69G5FAW"] as const;
  const jobs = ids.map((id) => ({ id }));
  const known = "01BX5ZZKBKACTAV9WEVGEMMVRZ";

  it("calls the function by the name it is given, with one parameter", () => {
    expect(enqueueCall('"app"."venturi_enqueue_v1"')).toMatch(
      / from "app"\."venturi_enqueue_v1"\(\$1::pg_catalog\.text::pg_catalog\.jsonb\)$/,
    );
  });

  it("says of jobs that it does not name that they were enqueued under their own ids", () => {
    expect(decodeEnqueued([{ jobs: 2, others: null }], jobs)).toEqual(
      ids.map((id) => ({ id, outcome: "enqueued" })),
    );
  });

  it("says of those that it names what became of them", () => {
    const others = JSON.stringify([[2, toUuid(known), "kept"]]);
    expect(decodeEnqueued([{ jobs: 2, others }], jobs)).toEqual([
      { id: ids[0], outcome: "enqueued" },
      { id: known, outcome: "kept" },
    ]);
  });

  it("is read by place where a driver renames columns, and where it gives numbers as text", () => {
    expect(decodeEnqueued([{ JOBS: "2", OTHERS: null }], jobs)).toHaveLength(2);
  });

  it.each([
    ["no row", []],
    ["a row for each job", [{ ord: 1 }, { ord: 2 }]],
    ["another number of jobs", [{ jobs: 1, others: null }]],
    ["a row of something else", [{}]],
  ])("is refused when it is %s, since nobody knows then what was stored", (_, rows) => {
    expect(() => decodeEnqueued(rows, jobs)).toThrow(
      expect.objectContaining({
        code: "database",
        message: expect.stringMatching(
          /for 2 jobs; pass what runs .*; the jobs may have been stored$/,
        ),
      }),
    );
  });
});
