import type { Names } from "./names.ts";
import { beat, startWorker, stopWorker } from "./sql/beat.ts";
import { configure } from "./sql/configure.ts";
import { enqueue } from "./sql/enqueue.ts";
import { handBack } from "./sql/hand-back.ts";
import { readJournal } from "./sql/read-journal.ts";
import { findOrphans, findStale, giveUpWorkers, recover } from "./sql/recover.ts";
import { settle, settleCompleted, verdicts } from "./sql/settle.ts";

/** The statements of one queue, written once. */
export type Statements = ReturnType<typeof createStatements>;

export function createStatements(names: Names) {
  return {
    beat: beat(names),
    configure: configure(names),
    enqueue: enqueue(names),
    findOrphans: findOrphans(names),
    findStale: findStale(names),
    giveUpWorkers: giveUpWorkers(names),
    handBack: handBack(names),
    readJournal: readJournal(names),
    recover: recover(names),
    settle: settle(names),
    settleCompleted: settleCompleted(names),
    startWorker: startWorker(names),
    stopWorker: stopWorker(names),
    verdicts: verdicts(names),
  };
}
