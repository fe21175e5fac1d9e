import type { WorkerSettings } from "../process/protocol.ts";
import type { Stage } from "../stage.ts";

/** A fault, and what it is done to. */
export interface Scenario {
  readonly name: string;
  /** What happens, in a few words. */
  readonly summary: string;
  /** Part of `--quick`. */
  readonly isQuick?: boolean;
  /** Part of `npm test`. */
  readonly isTested?: boolean;
  readonly worker?: Partial<WorkerSettings>;
  /** How long the backlog may go on growing after the fault has ended. @defaultValue 10 s */
  readonly recoversWithinMs?: number;
  /** Whether runs are recovered from workers that were killed or frozen, and from no others. */
  readonly onlySuspectsLose?: boolean;
  /** Whether a pooler lends connections to whoever needs one, so that they cannot be told apart. */
  readonly sharesConnections?: boolean;
  /** Before the processes start: puts something between them and the database. */
  prepare?(stage: Stage): Promise<void>;
  /** Starts the workers where three ordinary ones will not do. */
  startWorkers?(stage: Stage): Promise<void>;
  /** Resolves when the fault is over. */
  fault(stage: Stage): Promise<void>;
  /** What else does not hold when everything has ended. */
  verify?(stage: Stage): Promise<readonly string[]>;
}
