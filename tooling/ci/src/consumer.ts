import { mkdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { type CommandResult, runCommand } from "./command.ts";
import type { Packed } from "./packing.ts";

/** What users install beside venturi, at the versions that this workspace locks. */
const companions: Readonly<Record<string, string>> = {
  "@opentelemetry/sdk-trace-node": "2.12.1",
  "@types/node": "20.19.8",
  "@types/pg": "8.23.1",
  "drizzle-orm": "0.45.4",
  kysely: "0.28.19",
  pg: "8.23.1",
  valibot: "1.5.0",
};

/** The compilers that users may have. */
export type CompilerVersion = "5.9" | "6.0";

/** A project outside the workspace that installs packed packages as its users do. */
export class Consumer {
  readonly folder: string;
  readonly #packed: Packed;
  readonly #versions: Readonly<Record<string, string>>;

  constructor(folder: string, packed: Packed, versions: Readonly<Record<string, string>> = {}) {
    this.folder = folder;
    this.#packed = packed;
    this.#versions = { ...companions, ...versions };
  }

  write(file: string, text: string): void {
    const path = join(this.folder, file);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }

  /** `npm install`, with venturi's packages from their tarballs, also where others depend on them. */
  install(packages: readonly string[]): Promise<CommandResult> {
    const ours = packages.filter((name) => name.startsWith("@venturi/"));
    const dependencies = Object.fromEntries(packages.map((name) => [name, this.#version(name)]));
    const overrides = ours.includes("@venturi/core")
      ? {}
      : { "@venturi/core": this.#version("@venturi/core") };
    const manifest = { name: "consumer", private: true, dependencies, overrides };
    this.write("package.json", JSON.stringify(manifest));
    return this.run("npm", [
      "install",
      "--prefer-offline",
      "--no-audit",
      "--no-fund",
      "--ignore-scripts",
      "--loglevel=error",
    ]);
  }

  /** Compiles with a TypeScript that is not installed here; writes JavaScript beside the sources. */
  compile(version: CompilerVersion, project: string, options: object, files: string[]) {
    const compilerOptions = {
      strict: true,
      exactOptionalPropertyTypes: true,
      module: "nodenext",
      target: "es2022",
      noEmitOnError: true,
      // Node's own declarations do not pass exactOptionalPropertyTypes.
      skipLibCheck: true,
      ...options,
    };
    this.write(project, JSON.stringify({ compilerOptions, files }));
    return this.tsc(version, project);
  }

  /** Builds a project that has been written. */
  tsc(version: CompilerVersion, project: string) {
    const compiler = createRequire(import.meta.url).resolve(
      version === "5.9" ? "typescript-5.9/lib/tsc.js" : "typescript/lib/tsc.js",
    );
    return this.run(process.execPath, [compiler, "-p", project, "--pretty", "false"]);
  }

  run(program: string, args: readonly string[], env: Record<string, string> = {}) {
    return runCommand({ program, args, cwd: this.folder, env: { ...cleanEnvironment(), ...env } });
  }

  #version(name: string): string {
    if (name.startsWith("@venturi/")) return `file:${this.#packed.tarball(name)}`;
    const version = this.#versions[name];
    if (!version) throw new Error(`${name} is not among the packages that consumers install`);
    return version;
  }
}

/** An npm run by this npm must not take the workspace for its own. */
function cleanEnvironment(): Record<string, undefined> {
  const foreign = /^(npm_(package|lifecycle|command|config_local_prefix)|INIT_CWD|NODE_OPTIONS)/;
  const names = Object.keys(process.env).filter((name) => foreign.test(name));
  return Object.fromEntries(names.map((name) => [name, undefined]));
}
