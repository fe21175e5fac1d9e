import { expect, it } from "vitest";
import { reportLines } from "./demo-report.ts";

it("says what became of every run", () => {
  const id = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
  const summary = {
    byStatus: new Map([
      ["completed", 1_537],
      ["dead", 2],
    ]),
    runs: 1_546,
    retries: 4,
    dead: [
      { id, kind: "index_file", reason: "no such file" },
      { id, kind: "index_file", reason: "not a text" },
    ],
  };
  const progress = {
    indexed: 1_500,
    givenUp: 2,
    failing: 0,
    retries: 4,
    folders: 37,
    bytes: 10,
    lines: 9,
    words: 8,
  };
  const lines = reportLines({ progress, summary, elapsedMs: 1_000 });
  expect(lines).toContain("  outcomes  1,537 completed, 2 dead");
  expect(lines).toContain(
    "  runs      1,546: 1,539 ended their jobs, 4 failed and were tried again, 3 paused or were released",
  );
});
