import type { Row } from "./database.ts";
import type { Tier } from "./marks.ts";

/** The place in the order that a job had before it was claimed, and has again once it is put back. */
export interface OldPlace {
  readonly kindId: number;
  readonly tier: Tier;
  readonly seq: number;
}

/** A job is pending again at its old place, which claims may have passed; null: some jobs may be, at unknown places. */
export type OnPutBack = (place: OldPlace | null) => void;

/** Reports the due jobs that a statement has put back; if its answer is lost, that there may be some. */
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
