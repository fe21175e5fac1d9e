import { defineConfig } from "tsup";

/** How every package is built: ES modules with their type declarations, nothing bundled in. */
export function packageBuild(options: { readonly entry: string[] }) {
  return defineConfig({
    entry: options.entry,
    format: ["esm"],
    target: "node20",
    platform: "neutral",
    tsconfig: "tsconfig.build.json",
    // TypeScript 6 warns about an option that the declaration step still sets.
    dts: { compilerOptions: { ignoreDeprecations: "6.0" } },
    sourcemap: true,
    clean: true,
    treeshake: true,
    skipNodeModulesBundle: true,
  });
}
