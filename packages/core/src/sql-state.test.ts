import { describe, expect, it } from "vitest";
import { isRetryableSqlState } from "./sql-state.ts";

describe("a failed statement", () => {
  it.each(
    "40001 40003 40P01 53000 53100 53200 53300 53400 55P03 57014 57P01 57P02 57P03 57P05 25P03 25P04 08000 08003 08006 08P01 25006".split(
      " ",
    ),
  )("may succeed when sent again after %s", (sqlState) => {
    expect(isRetryableSqlState(sqlState)).toBe(true);
  });

  it.each(["08001", "08004", "08007", "53999"])(
    "may succeed when sent again after %s, as any loss of connection or want of resources",
    (sqlState) => {
      expect(isRetryableSqlState(sqlState)).toBe(true);
    },
  );

  it.each("23505 42P01 22P05 57P04 25P02 40000 40002 55006 57000 XX000 58030 42501".split(" "))(
    "will fail again after %s",
    (sqlState) => {
      expect(isRetryableSqlState(sqlState)).toBe(false);
    },
  );
});
