import { invalidArgument } from "./errors.ts";
import { type JobId, jobIdHalves } from "./job-id.ts";

/**
 * Where in its jitter window an attempt of a job falls, in [0, 1): the same for the same job and attempt on every
 * machine, and unrelated between jobs and between attempts.
 */
export function unitSample(jobId: JobId, attempt: number): number {
  return Number(mixJobId(jobId, attempt) >> 11n) / 2 ** 53;
}

/** The 64 mixed bits behind {@link unitSample}. */
export function mixJobId(jobId: JobId, attempt: number): bigint {
  const [high, low] = jobIdHalves(jobId);
  return mix64(high ^ mix64(low ^ BigInt.asUintN(64, BigInt(attempt))));
}

/** One step of the SplitMix64 generator: spreads every bit of a 64-bit number over all of them. */
export function mix64(x: bigint): bigint {
  let z = BigInt.asUintN(64, x + 0x9e3779b97f4a7c15n);
  z = BigInt.asUintN(64, (z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n);
  z = BigInt.asUintN(64, (z ^ (z >> 27n)) * 0x94d049bb133111ebn);
  return z ^ (z >> 31n);
}

/**
 * What a delay is multiplied with: from `1 - fraction` (inclusive) to 1 (exclusive; exactly 1 without jitter).
 *
 * A fraction outside 0 … 1 is clamped; NaN throws `invalid-argument`.
 */
export function jitterFactor(fraction: number, sample: number): number {
  if (typeof fraction !== "number" || Number.isNaN(fraction)) {
    throw invalidArgument("jitterFraction", "is not a number", "pass a number from 0 (none) to 1");
  }
  const clamped = Math.min(Math.max(fraction, 0), 1);
  return 1 - clamped * (1 - sample);
}
