import { afterAll, beforeAll, expect } from "vitest";

/** Fails the test file if the process warned of anything: too many listeners, a late rejection. */
export function expectNoWarnings(): void {
  const warnings: string[] = [];
  const remember = (warning: Error) => {
    warnings.push(`${warning.name}: ${warning.message}`);
  };
  beforeAll(() => {
    process.on("warning", remember);
  });
  afterAll(() => {
    process.off("warning", remember);
    expect(warnings).toEqual([]);
  });
}
