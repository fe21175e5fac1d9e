import type { CompleteRequest, Settlement } from "@venturi/core";
import { VenturiError } from "@venturi/core";
import { beforeEach, describe, expect, test } from "vitest";
import { Completer } from "./completer.ts";
import { Run } from "./run.ts";
import { deferred } from "./testing/signals.ts";

let run: Run;
let asked: CompleteRequest[];
let answer: () => Promise<void>;
let lost: Run[];
let completer: Completer;

beforeEach(() => {
  const job = { id: "a", runCount: 3, leaseMs: 60_000, leaseExpiresAt: new Date(0) };
  run = new Run(job as Run["job"], {} as Run["registration"], 0, 0);
  asked = [];
  answer = async () => undefined;
  lost = [];
  completer = new Completer({
    store: {
      complete: (_, request) => {
        asked.push(request);
        return answer();
      },
    },
    worker: 7,
    settlement: (_, { note }) => ({ note, attachment: null }) as Settlement,
    onLost: (each) => lost.push(each),
  });
});

const complete = (note?: string) => completer.complete(run, {}, note);

test("a run is completed in the transaction, under its own claim", async () => {
  const written = deferred();
  answer = () => written.promise;
  const completed = complete("paid");
  expect(run.completion).toBe("asked");
  written.resolve();
  await completed;
  expect(run.completion).toBe("written");
  expect(asked).toEqual([{ worker: 7, jobId: "a", runCount: 3, note: "paid", attachment: null }]);
});

describe("the store is not asked", () => {
  test.each<[string, (run: Run) => void]>([
    [
      "for a run that has ended",
      (each) => {
        each.hasEnded = true;
      },
    ],
    [
      "for one that the worker has ended while its handler goes on",
      (each) => {
        each.isReleased = true;
      },
    ],
    [
      "while it is being asked",
      (each) => {
        each.completion = "asked";
      },
    ],
    [
      "once more",
      (each) => {
        each.completion = "written";
      },
    ],
  ])("%s", async (_, change) => {
    change(run);
    const { completion } = run;
    await expect(complete()).rejects.toMatchObject({ code: "claim-lost" });
    expect(asked).toEqual([]);
    expect(run.completion).toBe(completion);
  });
});

test("a claim that the store says is lost is told of", async () => {
  answer = () => Promise.reject(new VenturiError("claim-lost", "no longer held"));
  await expect(complete()).rejects.toMatchObject({ code: "claim-lost" });
  expect(lost).toEqual([run]);
  expect(run.completion).toBe("none");
});

test("after any other error the handler may try again", async () => {
  answer = () => Promise.reject(new VenturiError("database", "gone", { isRetryable: true }));
  await expect(complete()).rejects.toMatchObject({ code: "database" });
  expect(lost).toEqual([]);
  answer = async () => undefined;
  await complete();
  expect(run.completion).toBe("written");
});
