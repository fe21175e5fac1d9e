import { expect } from "vitest";
import { type InvariantOptions, invariantViolations, type QueryRunner } from "./violations.ts";

/** Fails the test unless everything that must hold of a queue at any time holds. */
export async function expectInvariants(
  database: QueryRunner,
  options: InvariantOptions = {},
): Promise<void> {
  expect(await invariantViolations(database, options)).toEqual([]);
}
