import type { Names } from "../names.ts";
import { type Statement, statement } from "./statement.ts";

/** Changes what the database itself decides by. Parameters: 1 whether to notify (0/1). */
export function configure(n: Names): Statement {
  return statement("configure", `update ${n.of("meta")} set notify = ($1::int4 = 1)`);
}
