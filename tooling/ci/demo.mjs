// `npm run demo`: installs, then hands over to src/demo.ts.
import { install } from "./install.mjs";

await install();
const { register } = await import("tsx/esm/api");
register();
await import("./src/demo.ts");
