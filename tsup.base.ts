import { defineConfig } from "tsup";

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
    sourcemap: true,
    clean: true,
    treeshake: true,
    skipNodeModulesBundle: true,
  });
}
