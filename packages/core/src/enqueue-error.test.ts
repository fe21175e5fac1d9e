import { describe, expect, it } from "vitest";
import { toEnqueueError } from "./enqueue-error.ts";
import { toUuid } from "./job-id.ts";
import type { EnqueueJob } from "./store.ts";

const ids = ["01ARZ3NDEKTSV4RRFFQ69G5FAV", "01ARZ3NDEKTSV4RRFFQ69G5FAW"] as const;
const [one, two] = ids.map(
  (id): EnqueueJob => ({ id, kind: "k", payload: "1", priority: "normal" }),
);

function thrown(fields: Record<string, unknown>, message = "failed", changes: object = {}) {
  const jobs = [one, two].flatMap((job) => (job === undefined ? [] : [{ ...job, ...changes }]));
  return toEnqueueError(Object.assign(new Error(message), fields), { jobs, prefix: "venturi" });
}

describe("a failed enqueue", () => {
  it("is enqueue-unknown with the ids to repeat it with when the connection was lost", () => {
    const error = thrown({ code: "57P01", severity: "FATAL" }, "terminating connection");
    expect(error).toMatchObject({ code: "enqueue-unknown", isRetryable: true, ids });
    expect(error).not.toHaveProperty("id");
  });

  it("is database, retryable, when nothing can have been sent", () => {
    expect(thrown({ code: "ECONNREFUSED", syscall: "connect" })).toMatchObject({
      code: "database",
      isRetryable: true,
    });
  });

  it("is id-conflict naming the job", () => {
    expect(thrown({ code: "VT001", detail: `id ${toUuid(ids[0])}` })).toMatchObject({
      code: "id-conflict",
      id: ids[0],
      isRetryable: false,
      message: expect.stringContaining(ids[0]),
    });
  });

  it("is merge, retryable, when a pending job has changed, with the repeats of the call", () => {
    const detail = ids.map(toUuid).join(" ");
    const expected = { code: "merge", isRetryable: true };
    expect(thrown({ code: "VT003", detail })).toMatchObject({ ...expected, ids });
    expect(thrown({ code: "VT003", detail: "" })).toMatchObject({ ...expected, ids: [] });
  });

  it("says what was waited for when an id of the caller's own may be under way", () => {
    const waited = (message: string, repeatable: boolean) =>
      thrown({ code: "55P03" }, message, { repeatable });
    const sameId = "another call with the same id";
    const timeout = "canceling statement due to lock timeout";
    expect(waited(timeout, true)).toMatchObject({ sqlState: "55P03", isRetryable: true });
    expect(waited(timeout, true).message).toContain(sameId);
    expect(waited(timeout, false).message).not.toContain(sameId);
    const named = "another transaction has enqueued a job with this key, and is still open";
    expect(waited(named, true).message).not.toContain(sameId);
  });

  it("is invalid-argument when the function refuses what it was given", () => {
    expect(thrown({ code: "VT002" })).toMatchObject({ code: "invalid-argument" });
  });
});
