import { readFile } from "node:fs/promises";
import { defineConfig, type Options } from "tsup";
import ts from "typescript";

type Plugin = NonNullable<Options["esbuildPlugins"]>[number];

/**
 * Comments are for those who read the sources, and what they say of public names is in the declarations. The bundler
 * drops most of them but keeps those in classes, which were up to a fifth of what is shipped.
 */
const withoutComments: Plugin = {
  name: "without-comments",
  setup: (build) => {
    build.onLoad({ filter: /\.ts$/ }, async ({ path }) => {
      const { outputText } = ts.transpileModule(await readFile(path, "utf8"), {
        fileName: path,
        compilerOptions: {
          module: ts.ModuleKind.ESNext,
          target: ts.ScriptTarget.ESNext,
          verbatimModuleSyntax: true,
          removeComments: true,
          inlineSourceMap: true,
          inlineSources: true,
        },
      });
      return { contents: outputText, loader: "js" };
    });
  },
};

/**
 * How every package is built: ES modules with their type declarations, nothing bundled in. `hasDisposables`: they name
 * `Symbol.dispose` or `Symbol.asyncDispose`, which are in no `lib` that users have by default.
 */
export function packageBuild(options: {
  readonly entry: string[];
  readonly hasDisposables?: boolean;
}) {
  const banner = options.hasDisposables ? '/// <reference lib="esnext.disposable" />' : "";
  return defineConfig({
    entry: options.entry,
    format: ["esm"],
    target: "node20",
    platform: "neutral",
    tsconfig: "tsconfig.build.json",
    // TypeScript 6 warns about an option that the declaration step still sets.
    dts: { banner, compilerOptions: { ignoreDeprecations: "6.0" } },
    esbuildPlugins: [withoutComments],
    sourcemap: true,
    clean: true,
    treeshake: true,
    skipNodeModulesBundle: true,
  });
}
