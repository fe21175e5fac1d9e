import { build, serve } from "vitepress";
import { outputProblems } from "./output-links.ts";
import { assemblePages } from "./pages.ts";
import { output, site } from "./paths.ts";
import { writeReference } from "./reference.ts";
import { sourceLinkProblems } from "./source-links.ts";

const say = (line: string) => console.log(line);

/** Builds the site into `dist`, checks every link of it, and shows it with `--serve`. */
async function main(): Promise<void> {
  assertNone(await sourceLinkProblems());
  assemblePages();
  say("reading the packages");
  await writeReference();
  await build(site);
  assertNone(outputProblems(output));
  say(`the site is in ${output}, and every link of it leads somewhere`);
  if (!process.argv.includes("--serve")) return;
  await serve({ root: site, port: 4173 });
}

function assertNone(problems: readonly string[]): void {
  if (problems.length > 0) throw new Error(`links are broken:\n${problems.join("\n")}`);
}

main().catch((error: unknown) => {
  say(error instanceof Error ? (error.stack ?? error.message) : String(error));
  process.exitCode = 1;
});
