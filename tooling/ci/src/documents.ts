import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { createDatabase, dropDatabase } from "@venturi-tooling/postgres";
import { runCommand } from "./command.ts";
import { type DocumentBlock, documentBlocks } from "./document-blocks.ts";
import { commandGate, type Gate } from "./gate.ts";
import { filesUnder, root } from "./paths.ts";
import { binary } from "./static-gates.ts";

const folder = "tooling/ci/.blocks";

// Readers write process.env.DATABASE_URL, and name things that the next paragraph uses.
const compilerOptions = {
  types: ["node"],
  noUnusedLocals: false,
  noUnusedParameters: false,
  noPropertyAccessFromIndexSignature: false,
};

/** Every `ts` block of the README, the docs and the site's first page. */
export function allBlocks(): DocumentBlock[] {
  const documents = filesUnder(
    ".",
    /^([^/]+|(packages|examples)\/.*README|docs\/.*|tooling\/site\/pages\/.*)\.md$/,
  );
  return documents.flatMap((file) => documentBlocks(file, readFileSync(join(root, file), "utf8")));
}

/** Type-checks all blocks, then runs the marked ones, each with an empty database of its own. */
export function documentGates(serverUrl: string): Gate[] {
  const blocks = allBlocks();
  const path = ({ file, line }: DocumentBlock) => `${folder}/${file}/${line}.ts`;
  rmSync(join(root, folder), { recursive: true, force: true });
  for (const block of blocks) {
    mkdirSync(dirname(join(root, path(block))), { recursive: true });
    // Without an import or export it would be a script, sharing its names with all others.
    writeFileSync(join(root, path(block)), `${block.code}\nexport {};\n`);
  }
  mkdirSync(join(root, folder), { recursive: true });
  const project = { extends: "../../../tsconfig.base.json", compilerOptions, include: ["**/*.ts"] };
  writeFileSync(join(root, folder, "tsconfig.json"), JSON.stringify(project));
  const check = commandGate(`types of the ${blocks.length} code blocks in README and docs`, {
    program: binary("tsc"),
    args: ["-p", folder, "--pretty", "false"],
    cwd: root,
  });
  const runs = blocks
    .filter(({ runs }) => runs)
    .map((block) => runGate(block, path(block), serverUrl));
  return [check, ...runs];
}

function runGate(block: DocumentBlock, path: string, serverUrl: string): Gate {
  return {
    name: `code block ${block.file}:${block.line} runs`,
    run: async () => {
      const database = await createDatabase(serverUrl);
      try {
        const { ok, output } = await runCommand({
          program: process.execPath,
          args: ["--conditions=@venturi/source", "--import", tsx, path],
          cwd: root,
          env: { DATABASE_URL: database },
          timeoutMs: 60_000,
        });
        return { passed: ok ? 1 : 0, failed: ok ? 0 : 1, output };
      } finally {
        await dropDatabase(serverUrl, database);
      }
    },
  };
}

const tsx = pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href;
