import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { runCommand } from "./command.ts";
import { commandGate, type Gate } from "./gate.ts";
import { packageFolders, root } from "./paths.ts";
import { binary } from "./static-gates.ts";

/** The packages as a registry would get them. */
export class Packed {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Packs them all. */
  readonly packGate: Gate = {
    name: "pack",
    run: async () => {
      mkdirSync(this.#folder, { recursive: true });
      const args = ["--recursive", "--filter", "./packages/*", "pack"];
      const { ok, output } = await runCommand({
        program: binary("pnpm"),
        args: [...args, "--pack-destination", this.#folder],
        cwd: root,
      });
      return { passed: ok ? 1 : 0, failed: ok ? 0 : 1, output };
    },
  };

  /** Path of a package's tarball. */
  tarball(packageName: string): string {
    const start = `${packageName.slice(1).replace("/", "-")}-`;
    const name = readdirSync(this.#folder).find((file) => file.startsWith(start));
    if (!name) throw new Error(`${packageName} has not been packed`);
    return join(this.#folder, name);
  }

  /** What the linters of packages say about each tarball. */
  readonly lintGates: readonly Gate[] = packageFolders.flatMap((folder) => {
    const name = folder.replace("packages/", "@venturi/");
    return [
      this.#tarballGate(`publint ${name}`, name, "publint", ["--strict"]),
      this.#tarballGate(`types of ${name} as packed (attw)`, name, "attw", [
        "--profile=esm-only",
        "--no-color",
      ]),
    ];
  });

  #tarballGate(name: string, packageName: string, program: string, args: string[]): Gate {
    return {
      name,
      run: () => {
        const all = [this.tarball(packageName), ...args];
        return commandGate(name, { program: binary(program), args: all, cwd: root }).run();
      },
    };
  }
}
