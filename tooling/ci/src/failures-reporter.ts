import { writeFileSync } from "node:fs";
import { stripVTControlCharacters } from "node:util";
import type { Reporter, SerializedError, TestModule } from "vitest/node";

/** Names the file that the reporter writes. */
export const FAILURES_FILE = "VENTURI_FAILURES_FILE";

/** Lines that are shown of an error. */
const ERROR_LINES = 25;
/** A server that died fails every test after it: the first errors say why, the rest keep their names. */
const DETAILED = 20;

/**
 * Writes what has failed and nothing else, with the difference between expected and found, which
 * Vitest's own report in JSON leaves out, as it does errors of hooks and errors outside of tests.
 */
export default class FailuresReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly SerializedError[]): void {
    const file = process.env[FAILURES_FILE];
    if (file !== undefined) writeFileSync(file, describe(modules, unhandled));
  }
}

interface Failure {
  readonly title: string;
  readonly errors: readonly SerializedError[];
}

function describe(modules: readonly TestModule[], unhandled: readonly SerializedError[]): string {
  const failures = modules.flatMap(failuresIn);
  if (unhandled.length > 0) failures.push({ title: "ERROR outside of tests", errors: unhandled });
  return failures
    .map(({ title, errors }, index) => {
      const shown = index < DETAILED ? errors.slice(0, DETAILED).map(textOf) : [];
      return [title, ...shown].join("\n");
    })
    .join("\n");
}

function failuresIn(module: TestModule): Failure[] {
  const file = module.relativeModuleId;
  const failures: Failure[] = [];
  if (module.errors().length > 0) failures.push({ title: `FAIL ${file}`, errors: module.errors() });
  for (const suite of module.children.allSuites()) {
    const errors = suite.errors();
    if (errors.length > 0) failures.push({ title: `FAIL ${file} > ${suite.fullName}`, errors });
  }
  for (const test of module.children.allTests()) {
    const { state, errors = [] } = test.result();
    if (state === "passed") continue;
    const mark = state === "failed" ? "FAIL" : test.options.mode === "todo" ? "TODO" : "SKIP";
    failures.push({ title: `${mark} ${file} > ${test.fullName}`, errors });
  }
  return failures;
}

function textOf(error: SerializedError): string {
  const { message, stack = "", diff, cause } = error;
  const frames = stack.split("\n").filter((line) => /^\s+at /.test(line));
  const own = frames.filter((frame) => !/node_modules|<anonymous>/.test(frame));
  const name = error.name ?? error["type"] ?? "Error";
  const lines = [`${name}: ${message}`, diff ?? "", ...own].filter((part) => part !== "");
  const all = stripVTControlCharacters(lines.join("\n")).split("\n");
  const more = all.length - ERROR_LINES;
  const shown = more > 0 ? [...all.slice(0, ERROR_LINES), `(${more} more lines)`] : all;
  const text = shown.join("\n").replaceAll(/^/gm, "    ");
  return cause ? `${text}\n    caused by\n${textOf(cause)}` : text;
}
