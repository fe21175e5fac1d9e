/**
 * What Node is told where tests are run: to say where a warning comes from, and to end the process over a rejection
 * that nobody handles, also in the processes that tests start.
 */
export const strictNode = "--trace-warnings --unhandled-rejections=strict";

const warning = /^\(node:\d+\) (?:\[\w+\] )?\w*Warning: .*(?:\n {4}at .*)*/gm;

/** The warnings that Node has printed, each with its stack; those that differ by nothing but the process, once. */
export function nodeWarnings(output: string): string[] {
  const found = output.match(warning) ?? [];
  return [...new Map(found.map((text) => [text.replace(/^\(node:\d+\) /, ""), text])).values()];
}
