import { initial } from "./0001-initial/index.ts";
import type { Migration } from "./migration.ts";

/** Every step, oldest first. Embedded in code, so that it survives bundling. */
export const migrations: readonly Migration[] = [initial];
