import type { Names } from "./names.ts";
import { beat, startWorker, stopWorker } from "./sql/beat.ts";
import { cancel } from "./sql/cancel.ts";
import { cleanup, cleanupStart, cleanupWorkers } from "./sql/cleanup.ts";
import { complete } from "./sql/complete.ts";
import { configure } from "./sql/configure.ts";
import { enqueue } from "./sql/enqueue.ts";
import { extendLease } from "./sql/extend-lease.ts";
import { handBack } from "./sql/hand-back.ts";
import { findCandidates } from "./sql/merge.ts";
import { readJournal } from "./sql/read-journal.ts";
import { findOrphans, findStale, giveUpWorkers, recover } from "./sql/recover.ts";
import { retry } from "./sql/retry.ts";
import { settle, settleCompleted, verdicts } from "./sql/settle.ts";
import { stats } from "./sql/stats.ts";

/** The statements of one queue, written once. */
export type Statements = ReturnType<typeof createStatements>;

export function createStatements(names: Names) {
  return {
    beat: beat(names),
    cancel: cancel(names),
    cleanup: cleanup(names),
    cleanupStart: cleanupStart(names),
    cleanupWorkers: cleanupWorkers(names),
    complete: complete(names),
    configure: configure(names),
    enqueue: enqueue(names),
    extendLease: extendLease(names),
    findCandidates: findCandidates(names),
    findOrphans: findOrphans(names),
    findStale: findStale(names),
    giveUpWorkers: giveUpWorkers(names),
    handBack: handBack(names),
    readJournal: readJournal(names),
    recover: recover(names),
    retry: retry(names),
    settle: settle(names),
    settleCompleted: settleCompleted(names),
    stats: stats(names),
    startWorker: startWorker(names),
    stopWorker: stopWorker(names),
    verdicts: verdicts(names),
  };
}
