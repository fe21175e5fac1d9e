import { describe, expect, it } from "vitest";
import { type JobFilter, resolveJobFilter, toJobPage } from "./job-filter.ts";
import type { JobRecord } from "./journal.ts";

const id = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

describe("a job filter", () => {
  it("lists everything, a hundred a page, when it is empty or left out", () => {
    const everything = {
      statuses: null,
      kinds: null,
      ids: null,
      finishedSince: null,
      finishedUntil: null,
      limit: 100,
      before: null,
      signal: undefined,
    };
    expect(resolveJobFilter()).toEqual(everything);
    expect(resolveJobFilter({})).toEqual(everything);
    expect(resolveJobFilter({ limit: undefined, kind: undefined } as never)).toEqual(everything);
  });

  it("takes one or many of status, kind and id", () => {
    expect(resolveJobFilter({ status: "dead", kind: "a", ids: [id] })).toMatchObject({
      statuses: ["dead"],
      kinds: ["a"],
      ids: [id],
    });
    expect(resolveJobFilter({ status: ["dead", "cancelled"], kind: ["a", "b"] })).toMatchObject({
      statuses: ["dead", "cancelled"],
      kinds: ["a", "b"],
    });
  });

  it("that names none of something matches nothing, unlike one that leaves it out", () => {
    expect(resolveJobFilter({ status: [], kind: [], ids: [] })).toMatchObject({
      statuses: [],
      kinds: [],
      ids: [],
    });
  });

  it("takes moments as a Date or with epochMilliseconds", () => {
    const query = resolveJobFilter({
      finishedSince: new Date(5),
      finishedUntil: { epochMilliseconds: 9 },
    });
    expect(query).toMatchObject({ finishedSince: new Date(5), finishedUntil: new Date(9) });
  });

  it.each([1, 1000])("takes a limit of %i", (limit) => {
    expect(resolveJobFilter({ limit }).limit).toBe(limit);
  });

  it.each<[string, unknown, string]>([
    ["a limit of 0", { limit: 0 }, "filter.limit"],
    ["a negative limit", { limit: -1 }, "filter.limit"],
    ["a limit of 1,001", { limit: 1001 }, "filter.limit"],
    ["half a job", { limit: 1.5 }, "filter.limit"],
    ["no number of jobs", { limit: Number.NaN }, "filter.limit"],
    ["endless pages", { limit: Number.POSITIVE_INFINITY }, "filter.limit"],
    ["a limit of null", { limit: null }, "filter.limit"],
    ["a limit as text", { limit: "10" }, "filter.limit"],
    ["an unknown status", { status: "done" }, "filter.status"],
    ["an unknown status among others", { status: ["dead", "done"] }, "filter.status"],
    ["a status of null", { status: null }, "filter.status"],
    ["an empty kind", { kind: "" }, "filter.kind"],
    ["a kind with U+0000", { kind: "a\u0000" }, "filter.kind"],
    ["a kind that is no text", { kind: [1] }, "filter.kind"],
    ["an id that is none", { ids: ["42"] }, "filter.ids"],
    ["an id in lower case", { ids: [id.toLowerCase()] }, "filter.ids"],
    ["an invalid Date", { finishedSince: new Date(Number.NaN) }, "filter.finishedSince"],
    ["a time as a number", { finishedUntil: 5 }, "filter.finishedUntil"],
    ["somebody else's cursor", { cursor: id }, "filter.cursor"],
    ["half a cursor", { cursor: "1." }, "filter.cursor"],
    ["a cursor of a later version", { cursor: `2.${id}` }, "filter.cursor"],
    ["an empty cursor", { cursor: "" }, "filter.cursor"],
    ["a cursor of null", { cursor: null }, "filter.cursor"],
    ["an unknown member", { kinds: ["a"] }, "filter.kinds"],
    ["null", null, "filter"],
    ["an array", [], "filter"],
    ["text", "dead", "filter"],
  ])("refuses %s, naming it", (_, filter, argument) => {
    expect(() => resolveJobFilter(filter as JobFilter)).toThrow(
      expect.objectContaining({ code: "invalid-argument", argument }),
    );
  });
});

it("says what it was given instead of a status, a kind or an id", () => {
  const refusal = (filter: object) => () => resolveJobFilter(filter);
  expect(refusal({ status: ["dead", "done"] })).toThrow(
    'filter.status holds something else (got "done"): pass one of pending',
  );
  expect(refusal({ kind: [5] })).toThrow("filter.kind holds something else (got 5): pass");
  expect(refusal({ ids: ["42"] })).toThrow('filter.ids holds something else (got "42"): pass');
});

describe("a page of jobs", () => {
  const jobs = ["01ARZ3NDEKTSV4RRFFQ69G5FAX", "01ARZ3NDEKTSV4RRFFQ69G5FAW", id].map(
    (each) => ({ id: each }) as JobRecord,
  );

  it("that is not the last has a cursor, after which the next page goes on", () => {
    const page = toJobPage(jobs, 2);
    expect(page.jobs).toEqual(jobs.slice(0, 2));
    const next = resolveJobFilter({ cursor: page.nextCursor ?? "" });
    expect(next.before).toBe("01ARZ3NDEKTSV4RRFFQ69G5FAW");
  });

  it("that is the last, full or not, has none", () => {
    expect(toJobPage(jobs, 3)).toEqual({ jobs });
    expect(toJobPage(jobs, 100)).toEqual({ jobs });
    expect(toJobPage([], 100)).toEqual({ jobs: [] });
  });
});
