import type { Migration } from "../migration.ts";
import { bodies } from "./bodies.ts";
import { complete } from "./complete.ts";
import { enqueue } from "./enqueue.ts";
import { helpers } from "./helpers.ts";
import { lockKeys } from "./lock-keys.ts";
import { mergeCandidates } from "./merge-candidates.ts";
import { tables } from "./tables.ts";
import { turns } from "./turns.ts";

export const initial: Migration = {
  version: 1,
  name: "initial",
  statements: (names) => [
    ...tables(names),
    ...helpers(names),
    ...bodies(names),
    ...turns(names),
    ...lockKeys(names),
    ...mergeCandidates(names),
    ...enqueue(names),
    ...complete(names),
  ],
};
