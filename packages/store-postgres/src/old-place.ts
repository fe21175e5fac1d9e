import type { Row } from "./database.ts";
import type { Tier } from "./marks.ts";

/** Where a job stands that is pending again: at the place that it had before it was claimed. */
export interface OldPlace {
  readonly kindId: number;
  readonly tier: Tier;
  readonly seq: number;
}

/** A job is pending again at its old place, which claims may have passed; null: any may be, nobody knows where. */
export type OnPutBack = (place: OldPlace | null) => void;

/** Tells of the jobs that a statement has put back and that are due, or that its answer is lost. */
export async function tellPutBack(
  answer: Promise<readonly Row[]>,
  onPutBack: OnPutBack,
): Promise<readonly Row[]> {
  let rows: readonly Row[];
  try {
    rows = await answer;
  } catch (error) {
    onPutBack(null);
    throw error;
  }
  for (const { seq, kind_id: kindId, priority: tier } of rows) {
    if (typeof seq !== "number") continue;
    onPutBack({ kindId: kindId as number, tier: tier as Tier, seq });
  }
  return rows;
}
