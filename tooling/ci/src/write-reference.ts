import { writeReference } from "./configuration-reference.ts";

await writeReference();
