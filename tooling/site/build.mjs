// `npm run docs`: installs if that was never done, then hands over to src/main.ts.
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { install } from "../ci/install.mjs";

const modules = fileURLToPath(new URL("node_modules/vitepress", import.meta.url));
if (!existsSync(modules)) await install();
const { register } = await import("tsx/esm/api");
register();
await import("./src/main.ts");
