// `npm test`: installs, then hands over to src/test.ts.
import { install } from "./install.mjs";

await install();
const { register } = await import("tsx/esm/api");
register();
await import("./src/test.ts");
