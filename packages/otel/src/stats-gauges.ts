import type { BatchObservableResult, Observable } from "@opentelemetry/api";
import type { CountsByKind, Stats } from "@venturi/core";
import { DESTINATION, SYSTEM } from "./attributes.ts";
import { type Instrumentation, stopping } from "./instrumentation.ts";
import { type MeterSource, resolveMeterSource } from "./options.ts";

/** What can tell how a queue stands: an `OperatorQueue`, such as a `Queue` over a store. */
export interface StatsSource {
  stats(): Promise<Stats>;
}

/**
 * Reports how a queue stands as gauges: pending, scheduled and dead jobs and the age of the oldest due one by kind,
 * claimed jobs, live workers. It is asked whenever metrics are collected, and only then. One process does it for all.
 * Throws `invalid-argument` naming the option that is unknown or unacceptable.
 *
 * @example
 * using gauges = observeStats(new Queue(store));
 */
export function observeStats(queue: StatsSource, options: MeterSource = {}): Instrumentation {
  const meter = resolveMeterSource(options).getMeter("@venturi/otel");
  const gauge = (name: string, description: string, unit: string) =>
    meter.createObservableGauge(`venturi.${name}`, { description, unit });
  const byKind = {
    pendingByKind: gauge("jobs.pending", "Pending jobs, due or not.", "{job}"),
    scheduledByKind: gauge("jobs.scheduled", "Pending jobs that are not due yet.", "{job}"),
    deadByKind: gauge("jobs.dead", "Dead jobs that have not been cleaned up.", "{job}"),
  };
  const age = gauge("jobs.oldest_pending_age", "How long the oldest due job has waited.", "s");
  const claimed = gauge("jobs.running", "Jobs that are claimed.", "{job}");
  const workers = gauge("workers", "Workers that are alive.", "{worker}");
  const observables: Observable[] = [...Object.values(byKind), age, claimed, workers];
  const known = new Map<Observable, Set<string>>();
  const observe = async (result: BatchObservableResult): Promise<void> => {
    const stats = await queue.stats();
    const each = (observable: Observable, counts: CountsByKind, scale = 1): void => {
      const kinds = known.get(observable) ?? new Set();
      known.set(observable, kinds);
      for (const kind of Object.keys(counts)) kinds.add(kind);
      // A kind of which none is left is absent from stats: it has to be said to be zero.
      for (const kind of kinds) {
        const attributes = { [SYSTEM]: "venturi", [DESTINATION]: kind };
        result.observe(observable, (counts[kind] ?? 0) * scale, attributes);
      }
    };
    each(byKind.pendingByKind, stats.pendingByKind);
    each(byKind.scheduledByKind, stats.scheduledByKind);
    each(byKind.deadByKind, stats.deadByKind);
    each(age, stats.oldestPendingAgeMsByKind, 1 / 1_000);
    result.observe(claimed, stats.claimed, { [SYSTEM]: "venturi" });
    result.observe(workers, stats.workers, { [SYSTEM]: "venturi" });
  };
  meter.addBatchObservableCallback(observe, observables);
  return stopping([() => meter.removeBatchObservableCallback(observe, observables)]);
}
