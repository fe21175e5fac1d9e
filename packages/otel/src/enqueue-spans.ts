import {
  type Attributes,
  context,
  propagation,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import type { EnqueueCall, EnqueueEvent } from "@venturi/core";
import {
  commonKind,
  ERROR_TYPE,
  IN_TRANSACTION,
  MERGED_INTO,
  MESSAGE_COUNT,
  MESSAGE_ID,
  OUTCOME,
  operationAttributes,
  PRIORITY,
} from "./attributes.ts";
import { creationContext, linksTo } from "./links.ts";

/** A span for every call that enqueues, whose context the jobs carry away in their headers. */
export class EnqueueSpans {
  readonly #tracer: Tracer;
  readonly #spans = new Map<EnqueueCall, Span>();

  constructor(tracer: Tracer) {
    this.#tracer = tracer;
  }

  record(event: EnqueueEvent): void {
    const { call } = event;
    if (event.event === "start") {
      this.#start(call);
      return;
    }
    const span = this.#spans.get(call);
    if (span === undefined) return;
    this.#spans.delete(call);
    if (event.event === "failed") {
      span.setAttribute(ERROR_TYPE, event.error.code ?? event.error.name);
      span.setStatus({ code: SpanStatusCode.ERROR });
    } else if (!call.isBatch) {
      const [stored] = event.stored;
      const [job] = call.jobs;
      if (stored !== undefined) span.setAttribute(OUTCOME, stored.outcome);
      if (stored !== undefined && stored.id !== job?.id) span.setAttribute(MERGED_INTO, stored.id);
    }
    span.end();
  }

  /** Ends every span. */
  stop(): void {
    for (const span of this.#spans.values()) span.end();
    this.#spans.clear();
  }

  #start(call: EnqueueCall): void {
    const { jobs, isBatch, inTransaction } = call;
    const kind = commonKind(jobs);
    const [first] = jobs;
    const attributes: Attributes = {
      ...operationAttributes("enqueue", kind),
      ...(inTransaction ? { [IN_TRANSACTION]: true } : {}),
      ...(isBatch || first === undefined
        ? { [MESSAGE_COUNT]: jobs.length }
        : { [MESSAGE_ID]: first.id, [PRIORITY]: first.priority }),
    };
    // Whoever gave a job a context of its own knows better where it belongs.
    const given = new Set(jobs.filter(({ headers }) => creationContext(headers) !== undefined));
    const links = linksTo([...given]);
    const name = kind === null ? "enqueue" : `enqueue ${kind}`;
    const span = this.#tracer.startSpan(name, { kind: SpanKind.PRODUCER, attributes, links });
    this.#spans.set(call, span);
    const inside = trace.setSpan(context.active(), span);
    for (const job of jobs) if (!given.has(job)) propagation.inject(inside, job.headers);
  }
}
