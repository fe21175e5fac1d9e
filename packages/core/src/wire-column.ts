import { isArray } from "./is-array.ts";
import { readMember } from "./read-member.ts";

/** The rows of what a library answered with, which holds them or is them; none where it is neither. */
export function answerRows(answer: unknown): readonly unknown[] {
  const rows: unknown = isArray(answer) ? answer : readMember(answer, "rows");
  return isArray(rows) ? rows : [];
}

/** A column by its name; where a driver was told to rename columns, by its place, which it keeps. */
export function column(row: unknown, name: string, place: number): unknown {
  const columns = row as Readonly<Record<string, unknown>>;
  return name in columns ? columns[name] : Object.values(columns)[place];
}
