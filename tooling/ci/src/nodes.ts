import { existsSync } from "node:fs";
import { join } from "node:path";
import { root } from "./paths.ts";

/** The Nodes that are tested besides the one at hand. */
export const otherNodes = [22, 24] as const;

/** Path of another Node, installed by tooling/nodes. */
export function nodePath(major: number): string {
  const name = `node-${major}-${process.platform}-${process.arch}`;
  const path = join(root, "tooling", "nodes", "node_modules", name, "bin", "node");
  if (existsSync(path)) return path;
  throw new Error(`tooling/nodes has no ${name}: Node ${major} is tested on Linux only`);
}
