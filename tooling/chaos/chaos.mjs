// `npm run chaos`: installs, then hands over to src/main.ts.
import { install } from "../ci/install.mjs";

await install();
const { register } = await import("tsx/esm/api");
register();
const { main } = await import("./src/main.ts");
process.exitCode = await main(process.argv.slice(2));
