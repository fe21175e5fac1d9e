import { VenturiError } from "@venturi/core";
import { expect, it } from "vitest";
import { mayBeOneJobs } from "./backend.ts";

const fault = (sqlState: string | undefined, isRetryable = false) =>
  new VenturiError("database", "no", { sqlState, isRetryable });

it.each<[string, unknown]>([
  ["that nobody foresaw", new Error("no")],
  ["of a merge", new VenturiError("merge", "no", { isRetryable: true })],
  ["of an id", new VenturiError("id-conflict", "no")],
  ["of a value", fault("22003")],
  ["of a key that an open transaction holds", fault("55P03", true)],
  ["without a state", fault(undefined)],
])("a failure %s may be one job's", (_, error) => {
  expect(mayBeOneJobs(error)).toBe(true);
});

it.each<[string, unknown]>([
  ["of a lost connection", fault("08006", true)],
  ["of a server that stops", fault("57P01", true)],
  ["of a serialization", fault("40001", true)],
  ["of tables that are not there", new VenturiError("not-migrated", "no")],
  ["of a store that is closed", new VenturiError("closed", "no")],
  ["of a password", fault("28P01")],
  ["of a database that is not there", fault("3D000")],
  ["of a transaction that has failed", fault("25P02")],
])("a failure %s is everybody's", (_, error) => {
  expect(mayBeOneJobs(error)).toBe(false);
});
