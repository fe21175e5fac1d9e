import { join } from "node:path";
import { createDatabase, dropDatabase } from "@venturi-tooling/postgres";
import ts from "typescript";
import type { CommandResult } from "./command.ts";
import { Consumer } from "./consumer.ts";
import { asCommonJs, importedPackages } from "./consumer-sources.ts";
import { allBlocks } from "./documents.ts";
import type { Gate, GateResult, Stage } from "./gate.ts";
import { GettingStarted } from "./getting-started-project.ts";
import type { Packed } from "./packing.ts";
import { packageFolders } from "./paths.ts";

const names = packageFolders.map((folder) => folder.replace("packages/", "@venturi/"));

/** The quick start, in a project that installs everything from tarballs. */
export function consumerStages(folder: string, packed: Packed, serverUrl: string): Stage[] {
  const all = new Consumer(join(folder, "all"), packed);
  const install = gate("a consumer installs all packages", async () => {
    all.write("quick-start.mts", quickStart());
    all.write("quick-start.cts", asCommonJs(quickStart()));
    const others = ["pg", "kysely", "drizzle-orm", "valibot", "@types/pg", "@types/node"];
    return all.install([...names, ...others]);
  });
  const compile = (["5.9", "6.0"] as const).map((version) =>
    gate(`the quick start compiles with TypeScript ${version}, ESM and CommonJS`, () =>
      all.compile(
        version,
        `tsconfig.${version}.json`,
        { outDir: `out-${version}`, types: ["node"] },
        ["quick-start.mts", "quick-start.cts"],
      ),
    ),
  );
  // With the libs that follow from the target. The types of pg need Node's.
  const withoutNode = (["5.9", "6.0"] as const).map((version) =>
    gate(`declarations compile without Node's types with TypeScript ${version}`, () => {
      const bare = names.filter((name) => name !== "@venturi/store-postgres");
      all.write("bare.mts", everything([...bare, "@venturi/queue/adapters"]));
      const options = { noEmit: true, types: [], skipLibCheck: false };
      return all.compile(version, `tsconfig.bare.${version}.json`, options, ["bare.mts"]);
    }),
  );
  const inferred = (["5.9", "6.0"] as const).map((version) =>
    gate(`a state with methods is inferred with TypeScript ${version}`, () => {
      all.write("state.mts", stateWithMethods);
      const options = { noEmit: true, types: ["node"] };
      return all.compile(version, `tsconfig.state.${version}.json`, options, ["state.mts"]);
    }),
  );
  const runs = ["out-6.0/quick-start.mjs", "out-6.0/quick-start.cjs"].map((file) =>
    gate(`the quick start runs from tarballs (${file.endsWith(".mjs") ? "ESM" : "require"})`, () =>
      inDatabase(serverUrl, (url) => all.run(process.execPath, [file], { DATABASE_URL: url })),
    ),
  );
  const pages = (["5.9", "6.0"] as const).map((version) =>
    gate(
      `the files of getting started compile as printed with TypeScript ${version}, and run`,
      async () => {
        const project = new GettingStarted(all, version);
        const built = await project.build();
        return built.ok ? inDatabase(serverUrl, (url) => project.run(url)) : built;
      },
    ),
  );
  const others = gate("the quick start runs with the oldest pg and the newest kysely", async () => {
    const consumer = new Consumer(join(folder, "others"), packed, {
      pg: "8.11.0",
      kysely: "0.29.9",
    });
    const installed = await consumer.install([...names, "pg", "kysely", "valibot"]);
    if (!installed.ok) return installed;
    consumer.write("quick-start.mjs", toJavaScript(quickStart()));
    return inDatabase(serverUrl, (url) =>
      consumer.run(process.execPath, ["quick-start.mjs"], { DATABASE_URL: url }),
    );
  });
  return [
    { lanes: 1, gates: [install] },
    { lanes: 2, gates: [...compile, ...withoutNode, ...inferred, ...pages] },
    {
      lanes: 2,
      gates: [
        ...runs,
        others,
        ...names.flatMap((name) => aloneGates(name, folder, packed, serverUrl)),
      ],
    },
  ];
}

/** A method is what TypeScript 5.9 infers later than the rest of a literal; 6.0 does so where it uses `this`. */
const stateWithMethods = `
  import { defineTask, type Handler } from "@venturi/core";
  import { MemoryStore } from "@venturi/testing";
  import { Worker } from "@venturi/worker";
  import * as v from "valibot";

  const Count = defineTask({ kind: "count", payload: v.object({ by: v.number() }) });
  const count: Handler<typeof Count, { add(n: number): void }> = ({ by }, _, state) => state.add(by);
  const store = new MemoryStore();
  new Worker(store, { state: { add(_n: number) {} } }).register(Count, count);
  new Worker(store, { state: { n: 0, add(n: number) { this.n += n; } } }).register(Count, count);
`;

/** The first block of the README that runs. */
function quickStart(): string {
  const block = allBlocks().find(({ file, runs }) => file === "README.md" && runs);
  if (!block) throw new Error("README.md has no ```ts run``` block: no quick start");
  return block.code;
}

function toJavaScript(code: string): string {
  const compilerOptions = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 };
  return ts.transpileModule(code, { compilerOptions }).outputText;
}

/** A package installs alone, loads both ways, and its README's first lines run. */
function aloneGates(name: string, folder: string, packed: Packed, serverUrl: string): Gate[] {
  const path = join(folder, name.replace("@venturi/", ""));
  const loads = gate(`${name} installs alone and loads, by import and by require`, async () => {
    const alone = new Consumer(join(path, "alone"), packed);
    const installed = await alone.install([name]);
    if (!installed.ok) return installed;
    alone.write(
      "load.cjs",
      `for (const path of Object.keys(require("./node_modules/${name}/package.json").exports)) {
        const specifier = "${name}" + path.slice(1);
        const a = require(specifier);
        import(specifier).then((b) => {
          if (Object.keys(a).length === 0 || a !== b && Object.keys(a)[0] !== Object.keys(b)[0]) throw new Error(specifier + " exports nothing");
        });
      }`,
    );
    return alone.run(process.execPath, ["load.cjs"]);
  });
  const readme = gate(`the first lines of ${name}'s README run`, async () => {
    const file = `${name.replace("@venturi/", "packages/")}/README.md`;
    const block = allBlocks().find((found) => found.file === file && found.runs);
    if (!block) throw new Error(`${file} has no \`\`\`ts run\`\`\` block`);
    const project = new Consumer(join(path, "readme"), packed);
    const installed = await project.install([...new Set([name, ...importedPackages(block.code)])]);
    if (!installed.ok) return installed;
    project.write("readme.mjs", toJavaScript(block.code));
    return inDatabase(serverUrl, (url) =>
      project.run(process.execPath, ["readme.mjs"], { DATABASE_URL: url }),
    );
  });
  return [loads, readme];
}

function everything(packages: readonly string[]): string {
  return packages.map((name, index) => `export * as package${index} from "${name}";\n`).join("");
}

async function inDatabase(
  serverUrl: string,
  use: (databaseUrl: string) => Promise<CommandResult>,
): Promise<CommandResult> {
  const database = await createDatabase(serverUrl);
  try {
    return await use(database);
  } finally {
    await dropDatabase(serverUrl, database);
  }
}

function gate(name: string, run: () => Promise<CommandResult>): Gate {
  return {
    name,
    run: async (): Promise<GateResult> => {
      const { ok, output } = await run();
      return { passed: ok ? 1 : 0, failed: ok ? 0 : 1, output };
    },
  };
}
