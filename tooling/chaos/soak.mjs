// `npm run soak`: installs, then hands over to src/soak/main.ts.
import { install } from "../ci/install.mjs";

await install();
const { register } = await import("tsx/esm/api");
register();
const { main } = await import("./src/soak/main.ts");
process.exitCode = await main(process.argv.slice(2));
