// The benchmarks, where everything is installed and built.
import { register } from "tsx/esm/api";

register();
const { main } = await import("./src/main.ts");
process.exitCode = await main(process.argv.slice(2));
