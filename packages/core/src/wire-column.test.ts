import { describe, expect, it } from "vitest";
import { answerRows } from "./wire-column.ts";

describe("the rows of an answer", () => {
  const rows = [{ n: 1 }, { n: 2 }];

  it.each([
    ["what it holds", { rows, rowCount: 2 }],
    ["the answer itself, where it holds none", rows],
    ["the answer itself, whatever else it says", Object.assign([...rows], { columns: ["n"] })],
  ])("are %s", (_, answer) => {
    expect([...answerRows(answer)]).toEqual(rows);
  });

  it.each([undefined, null, 2, "rows", {}, { rows: 2 }, () => rows])("are none of %j", (answer) => {
    expect(answerRows(answer)).toEqual([]);
  });

  it("are none of what cannot be read", () => {
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    expect(answerRows(proxy)).toEqual([]);
  });
});
