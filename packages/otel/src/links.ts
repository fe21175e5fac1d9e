import { type Link, propagation, ROOT_CONTEXT, type SpanContext, trace } from "@opentelemetry/api";

type Headers = Readonly<Record<string, string>>;

/** A span links to no more jobs than this: SDKs keep 128 links by default. */
const mostLinks = 128;

/** The context of the span that a job was enqueued in, as its headers carry it. */
export function creationContext(headers: Headers): SpanContext | undefined {
  return trace.getSpanContext(propagation.extract(ROOT_CONTEXT, headers));
}

/** Links to where jobs were enqueued, one each. */
export function linksTo(jobs: readonly { readonly headers: Headers }[]): Link[] {
  const links: Link[] = [];
  for (const { headers } of jobs) {
    if (links.length === mostLinks) break;
    const created = creationContext(headers);
    if (created !== undefined) links.push({ context: created });
  }
  return links;
}
