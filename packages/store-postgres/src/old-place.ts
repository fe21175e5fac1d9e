import type { Row } from "./database.ts";
import type { Tier } from "./marks.ts";

/** Where a job stands that is pending again: at the place that it had before it was claimed. */
export interface OldPlace {
  readonly kindId: number;
  readonly tier: Tier;
  readonly seq: number;
}

/** A job is pending again at its old place, which claims may have passed. */
export type OnPutBack = (place: OldPlace) => void;

/** Tells of the jobs that a statement has put back and that are due. */
export function tellPutBack(rows: readonly Row[], onPutBack: OnPutBack): void {
  for (const { seq, kind_id: kindId, priority: tier } of rows) {
    if (typeof seq !== "number") continue;
    onPutBack({ kindId: kindId as number, tier: tier as Tier, seq });
  }
}
