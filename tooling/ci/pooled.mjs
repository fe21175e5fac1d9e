// `npm run pooled`: installs, then hands over to src/pooled.ts.
import { install } from "./install.mjs";

await install();
const { register } = await import("tsx/esm/api");
register();
await import("./src/pooled.ts");
