import { mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import type { CommandResult } from "./command.ts";
import type { CompilerVersion, Consumer } from "./consumer.ts";
import { root } from "./paths.ts";
import { printedFiles, printedOutput } from "./printed-files.ts";

const packages = ["jobs", "web", "worker"];

/** Ends the worker as Ctrl-C does, once it has done what the page says. */
const stopAfterMail = `const { log } = console;
console.log = (...args) => {
  log(...args);
  if (String(args[0]).startsWith("to ada")) process.kill(process.pid, "SIGINT");
};
`;

/** The page's project, as printed, among the packages that a consumer has installed. */
export class GettingStarted {
  readonly #page = readFileSync(join(root, "docs/getting-started.md"), "utf8");
  readonly #consumer: Consumer;
  readonly #folder: string;
  readonly #version: CompilerVersion;

  constructor(consumer: Consumer, version: CompilerVersion) {
    this.#consumer = consumer;
    this.#version = version;
    this.#folder = `getting-started-${version}`;
  }

  /** Writes its files, links its packages as npm's workspaces do, and builds them in their order. */
  async build(): Promise<CommandResult> {
    for (const { path, text } of printedFiles(this.#page))
      this.#consumer.write(`${this.#folder}/${path}`, text);
    this.#consumer.write(`${this.#folder}/stop.mjs`, stopAfterMail);
    const scope = join(this.#consumer.folder, this.#folder, "node_modules/@acme");
    mkdirSync(scope, { recursive: true });
    symlinkSync("../../packages/jobs", join(scope, "jobs"));
    return inTurn(packages, (name) =>
      this.#consumer.tsc(this.#version, `${this.#folder}/packages/${name}`),
    );
  }

  /** Runs it on an empty database; the last command must say what the page shows. */
  async run(databaseUrl: string): Promise<CommandResult> {
    const node = (...args: string[]) =>
      this.#consumer.run(process.execPath, args, { DATABASE_URL: databaseUrl });
    const path = (file: string) => `${this.#folder}/packages/${file}`;
    const before = await inTurn(
      [
        [path("worker/dist/migrate.js")],
        [path("web/dist/main.js")],
        ["--import", `./${this.#folder}/stop.mjs`, path("worker/dist/main.js")],
      ],
      (args) => node(...args),
    );
    if (!before.ok) return before;
    const { ok, output } = await node(path("worker/dist/report.js"));
    const shown = printedOutput(this.#page, "node packages/worker/dist/report.js");
    return output === shown
      ? { ok, output }
      : { ok: false, output: `the page shows\n${shown}\nbut it is\n${output}` };
  }
}

/** Until one fails. */
async function inTurn<T>(
  items: readonly T[],
  command: (item: T) => Promise<CommandResult>,
): Promise<CommandResult> {
  let result: CommandResult = { ok: true, output: "" };
  for (const item of items) {
    result = await command(item);
    if (!result.ok) break;
  }
  return result;
}
