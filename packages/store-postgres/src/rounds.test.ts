import { describe, expect, it } from "vitest";
import { inRounds } from "./rounds.ts";

const request = (jobId: string, run: number) => ({ jobId, run });

describe("requests for many jobs", () => {
  it("go out together when no job stands among them twice", async () => {
    const rounds: number[] = [];
    const send = async (round: readonly { run: number }[]) => {
      rounds.push(round.length);
      return round.map(({ run }) => run);
    };
    expect(await inRounds([request("a", 1), request("b", 2)], send)).toEqual([1, 2]);
    expect(rounds).toEqual([2]);
  });

  it("go out one after the other for a job that stands among them more than once, answered in order", async () => {
    const rounds: string[] = [];
    const send = async (round: readonly { jobId: string; run: number }[]) => {
      rounds.push(round.map(({ jobId, run }) => `${jobId}${run}`).join(" "));
      return round.map(({ run }) => run);
    };
    const requests = [request("a", 1), request("a", 2), request("b", 3), request("a", 4)];
    expect(await inRounds(requests, send)).toEqual([1, 2, 3, 4]);
    expect(rounds).toEqual(["a1 b3", "a2", "a4"]);
  });
});
