// `npm run bench`: installs, builds the packages as their users get them, then hands over to run.mjs.
import { execFileSync } from "node:child_process";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { install } from "../tooling/ci/install.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const binaries = join(root, "node_modules", ".bin");

await install();
execFileSync(
  join(binaries, "turbo"),
  ["run", "build", "--output-logs=errors-only", "--ui=stream", "--filter=./packages/*"],
  {
    cwd: root,
    stdio: "inherit",
    env: {
      ...process.env,
      PATH: [binaries, process.env.PATH].join(delimiter),
      TURBO_TELEMETRY_DISABLED: "1",
      DO_NOT_TRACK: "1",
    },
  },
);
await import("./run.mjs");
