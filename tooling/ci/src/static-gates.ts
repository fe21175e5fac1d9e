import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { sourceLinkProblems } from "@venturi-tooling/site/links";
import { referenceProblems } from "./configuration-reference.ts";
import { checkGate, commandGate, type Gate } from "./gate.ts";
import { arrowViolations, type Manifest } from "./import-arrows.ts";
import { filesUnder, packageFolders, root } from "./paths.ts";

/** A program that the root installs. */
export function binary(name: string): string {
  return join(root, "node_modules", ".bin", name);
}

/** Formatting and lint rules. */
export const lintGate: Gate = commandGate("lint", {
  program: binary("biome"),
  args: ["ci", ".", "--colors=off"],
  cwd: root,
});

/** Who imports whom. */
export const arrowsGate: Gate = checkGate("import arrows", async () => {
  const problems = packageFolders.map(async (folder) => {
    const text = await readFile(join(root, folder, "package.json"), "utf8");
    const manifest = JSON.parse(text) as Manifest & { name: string };
    const sources = new Map<string, string>();
    for (const file of filesUnder(`${folder}/src`, /\.ts$/)) {
      sources.set(file.slice(folder.length + 1), await readFile(join(root, file), "utf8"));
    }
    return arrowViolations({ name: manifest.name, manifest, sources }).map(
      (problem) => `${folder}/${problem}`,
    );
  });
  return (await Promise.all(problems)).flat();
});

/** Whether the reference of options is what their docstrings say. */
export const referenceGate: Gate = checkGate("configuration reference", referenceProblems);

/** Links between the pages of the repository, and to their headings. */
export const linksGate: Gate = checkGate("links of the documentation", sourceLinkProblems);

/** The compiler over every project: what is shipped, tests, examples, benchmarks, tooling. */
export const typeCheckGates: readonly Gate[] = filesUnder(
  ".",
  /(^|\/)tsconfig(\.build)?\.json$/,
).map((project) =>
  commandGate(`types of ${project}`, {
    program: binary("tsc"),
    args: ["-p", project, "--pretty", "false"],
    cwd: root,
  }),
);

/** Dependencies and exports that nobody uses. */
export const knipGate: Gate = commandGate("unused code (knip)", {
  program: binary("knip"),
  args: ["--no-progress"],
  cwd: root,
});

/** `dist` of every package. */
export const buildGate: Gate = commandGate("build", {
  program: binary("turbo"),
  args: ["run", "build", "--output-logs=errors-only", "--ui=stream"],
  cwd: root,
  env: { TURBO_TELEMETRY_DISABLED: "1", DO_NOT_TRACK: "1" },
});

/** What a bundled package weighs. */
export const sizeGate: Gate = commandGate("size limits", {
  program: binary("size-limit"),
  args: [],
  cwd: root,
});

/** Whether `schema.sql` is what the migrations leave on this server. */
export function schemaGate(name: string, serverUrl: string): Gate {
  return commandGate(name, {
    program: process.execPath,
    args: [
      "--conditions=@venturi/source",
      "--import",
      "tsx",
      join(root, "tooling/ci/src/schema-dump.ts"),
      "--check",
    ],
    cwd: root,
    env: { DATABASE_URL: serverUrl },
  });
}
