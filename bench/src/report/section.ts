import { type Figure, figure } from "../measure/figures.ts";

/** One part of the report: its Markdown, and the plots it shows, by file name. */
export interface Section {
  readonly markdown: string;
  readonly plots: Readonly<Record<string, string>>;
}

/** A number in few digits, thousands set apart. */
export function number(value: number, digits = 0): string {
  if (!Number.isFinite(value)) return "–";
  return value.toLocaleString("en-US", {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
}

/** "median (lowest–highest)", or the median alone where it was measured once. */
export function spread(values: readonly number[] | Figure, digits = 0): string {
  const known = "median" in values ? values : figure(values);
  const [only] = known.values;
  if (known.values.length === 0) return "–";
  if (known.values.length === 1) return number(only as number, digits);
  const range = `${number(known.lowest, digits)}–${number(known.highest, digits)}`;
  return `${number(known.median, digits)} (${range})`;
}

/** A table; the first column is text, the others are numbers. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  const rule = head.map((_, index) => (index === 0 ? "---" : "---:"));
  return [line(head), line(rule), ...rows.map(line)].join("\n");
}
