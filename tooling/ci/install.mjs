// Runs before anything is installed: plain JavaScript, Node built-ins only.
import { spawn } from "node:child_process";
import { accessSync, constants, mkdirSync, readFileSync } from "node:fs";
import { userInfo } from "node:os";
import { isAbsolute, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../", import.meta.url));

const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  console.error(`venturi needs Node 20.19 or newer; this is ${process.versions.node}`);
  process.exit(1);
}

/** Installs what pnpm-lock.yaml lists, with the pnpm that package.json names, fetched by npx. */
export async function install() {
  const home = writableHome();
  process.env.HOME = home;
  // Where HOME is empty, the npm that started this keeps its cache in a folder named "~".
  if (!isAbsolute(process.env.npm_config_cache ?? ""))
    process.env.npm_config_cache = join(home, ".npm");
  process.env.CI = "true"; // pnpm must not ask
  const { packageManager } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const args = ["-y", packageManager, "install", "--frozen-lockfile", "--prefer-offline"];
  console.log(`installing dependencies, this takes a minute (npx ${args.join(" ")})`);
  const { code, output } = await run("npx", args);
  if (code !== 0) {
    console.error(output);
    throw new Error("the dependencies could not be installed; see above");
  }
}

/** npm and pnpm keep their caches under HOME, which may be unset, empty or not ours. */
function writableHome() {
  for (const home of [process.env.HOME, userInfo().homedir]) {
    if (home && isWritable(home)) return home;
  }
  const home = join(root, ".venturi", "home");
  mkdirSync(home, { recursive: true });
  return home;
}

function isWritable(folder) {
  try {
    accessSync(folder, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

function run(program, args) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { cwd: root, stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.on("data", (chunk) => {
        output += chunk;
      });
    }
    child.once("error", reject);
    child.once("close", (code) => resolve({ code, output }));
  });
}
