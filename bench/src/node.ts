import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

const wanted = 24;

/** The Node that every system runs on: 24, from tooling/nodes, or this one where it is 24 or newer. */
export function benchNode(): string {
  const name = `node-${wanted}-${process.platform}-${process.arch}`;
  const path = fileURLToPath(
    new URL(`../../tooling/nodes/node_modules/${name}/bin/node`, import.meta.url),
  );
  if (existsSync(path) && execFileSync(path, ["--version"]).toString().startsWith(`v${wanted}.`))
    return path;
  if (Number(process.versions.node.split(".")[0]) >= wanted) return process.execPath;
  throw new Error(`systems are measured on Node ${wanted}: run this with it (found no ${name})`);
}
