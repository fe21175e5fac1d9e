import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

/** Puts what the processes of the harness run into one file, since hundreds of them are started and killed. */
export async function bundleActor(folder: string): Promise<string> {
  const outfile = join(folder, "actor.mjs");
  await build({
    entryPoints: [fileURLToPath(new URL("./actor.ts", import.meta.url))],
    outfile,
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node20",
    conditions: ["@venturi/source"],
    external: ["pg-native"],
    // pg is CommonJS and asks for Node's modules by require.
    banner: {
      js: 'import { createRequire as makeRequire } from "node:module"; const require = makeRequire(import.meta.url);',
    },
    logLevel: "error",
  });
  return outfile;
}
