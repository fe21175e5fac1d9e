import { expect, it } from "vitest";
import { fuzzArguments } from "./testing/fuzz/arguments.ts";

/** Set by the long form, `tooling/proofs/fuzz.mjs`. */
const inputs = Number(process.env["FUZZ_ARGUMENTS"] ?? 12_500);
const seed = Number(process.env["FUZZ_SEED"] ?? 1);

it(`arguments, callbacks, schemas and handlers may give anything: ${inputs} times a typed error, or what it can mean`, async () => {
  expect(await fuzzArguments(inputs, seed)).toBeGreaterThanOrEqual(inputs);
}, 7_200_000);
