import {
  context,
  propagation,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import type { RunEvent, RunFacts, SettleEvent, WorkerEvent } from "@venturi/core";
import {
  CLIENT_ID,
  ERROR_TYPE,
  FAILURE_COUNT,
  LATENCY,
  MESSAGE_ID,
  OUTCOME,
  operationAttributes,
  PRIORITY,
  RUN_COUNT,
} from "./attributes.ts";
import { linksTo } from "./links.ts";

/**
 * Where the spans of runs belong: `"children"` of the span that enqueued the job, in its trace; or `"roots"` of traces
 * of their own. They link to it in either case.
 */
export type RunSpanPlace = "children" | "roots";

interface OpenRun {
  readonly span: Span;
  readonly worker: string;
  /** Epoch milliseconds. */
  readonly startedAt: number;
  /** Null while the handler runs. */
  endedAt: number | null;
}

/**
 * A span for every run, around its handler. It ends when the run did, but is not handed on before the store has
 * confirmed how that was settled, so that it can say so.
 */
export class RunSpans {
  readonly #tracer: Tracer;
  readonly #place: RunSpanPlace;
  readonly #open = new Map<RunFacts, OpenRun>();

  constructor(tracer: Tracer, place: RunSpanPlace) {
    this.#tracer = tracer;
    this.#place = place;
  }

  recordRun(event: RunEvent): void {
    const { run, worker } = event;
    if (event.event === "start") {
      const open = this.#start(run, worker, Date.now());
      open.span.setAttribute(LATENCY, event.latencyMs / 1_000);
      // In the context that the job was enqueued in, baggage included, whatever this worker is doing just now.
      const inside = trace.setSpan(contextOf(run), open.span);
      event.around.push((call) => context.with(inside, call));
      return;
    }
    const open =
      this.#open.get(run) ?? this.#start(run, worker, Date.now() - Math.max(0, event.durationMs));
    open.endedAt = open.startedAt + Math.max(0, event.durationMs);
    if (event.result !== "failed") return;
    open.span.setStatus({ code: SpanStatusCode.ERROR });
    open.span.setAttribute(ERROR_TYPE, event.error?.name ?? "_OTHER");
  }

  recordSettle(event: SettleEvent): void {
    const open = this.#open.get(event.run);
    if (open === undefined) return;
    const outcome = event.event === "settled" ? event.outcome : event.event;
    open.span.setAttribute(OUTCOME, outcome);
    if (event.event !== "settled" || event.attempt !== null)
      open.span.setStatus({ code: SpanStatusCode.ERROR });
    this.#end(event.run, open);
  }

  /** What a session that has ended could not settle. */
  recordWorker(event: WorkerEvent): void {
    if (event.event !== "stopped") return;
    for (const [run, open] of this.#open) {
      const isOver = open.worker === event.worker && open.endedAt !== null;
      if (isOver) this.#end(run, open);
    }
  }

  /** Ends every span. */
  stop(): void {
    for (const [run, open] of this.#open) this.#end(run, open);
  }

  #start(run: RunFacts, worker: string, startedAt: number): OpenRun {
    const span = this.#tracer.startSpan(
      `run ${run.kind}`,
      {
        kind: SpanKind.CONSUMER,
        startTime: startedAt,
        links: linksTo([run]),
        attributes: {
          ...operationAttributes("run", run.kind),
          [MESSAGE_ID]: run.id,
          [CLIENT_ID]: worker,
          [RUN_COUNT]: run.runCount,
          [FAILURE_COUNT]: run.failureCount,
          [PRIORITY]: run.priority,
        },
      },
      this.#place === "children" ? contextOf(run) : ROOT_CONTEXT,
    );
    const open = { span, worker, startedAt, endedAt: null };
    this.#open.set(run, open);
    return open;
  }

  #end(run: RunFacts, { span, startedAt, endedAt }: OpenRun): void {
    this.#open.delete(run);
    span.end(endedAt ?? Math.max(startedAt, Date.now()));
  }
}

function contextOf({ headers }: RunFacts) {
  return propagation.extract(ROOT_CONTEXT, headers);
}
