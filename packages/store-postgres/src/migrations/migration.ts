import type { Names } from "../names.ts";

/** One step of the schema. Steps are only ever appended; what has been published is never edited. */
export interface Migration {
  readonly version: number;
  readonly name: string;
  /** The statements for one queue's names, run in one transaction. */
  readonly statements: (names: Names) => readonly string[];
}
