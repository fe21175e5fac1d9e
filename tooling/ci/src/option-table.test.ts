import { describe, expect, test } from "vitest";
import { optionTable, readOptions } from "./option-table.ts";

const source = `
/** Not this one. */
export interface Other { readonly a: string }
export interface Options<T = undefined> {
  /**
   * Text of
   * two lines.
   * @defaultValue "30s"
   */
  readonly wait?: number;
  /** What must | be given. */
  readonly state: T;
  /**
   * Told of trouble.
   * @defaultValue a silent one
   */
  readonly logger?: object;
}
interface Bare { readonly a: string }
`;

describe("a table of options", () => {
  test("says what the docstrings say, in their order", () => {
    expect(optionTable(readOptions("options.ts", source, "Options"))).toBe(
      [
        "| option | default | meaning |",
        "| --- | --- | --- |",
        '| `wait` | `"30s"` | Text of two lines. |',
        "| `state` | required | What must \\| be given. |",
        "| `logger` | a silent one | Told of trouble. |",
      ].join("\n"),
    );
  });

  test("needs a docstring for every option, and the interface", () => {
    expect(() => readOptions("options.ts", source, "Bare")).toThrow("Bare.a has no docstring");
    expect(() => readOptions("options.ts", source, "None")).toThrow("no interface None");
  });
});
