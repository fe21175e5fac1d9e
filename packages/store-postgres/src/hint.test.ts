import { expect, test } from "vitest";
import { noHint, readHint } from "./hint.ts";

test("a notification of one new job names it", () => {
  expect(readHint("0197f3a0-0000-7abc-8def-000000000001")).toBe("01JZST0000FAY8VVR000000001");
});

test.each([
  ["nothing", undefined],
  ["an empty text", ""],
  ["zeros", noHint],
  ["an id in capitals", "0197F3A0-0000-7ABC-8DEF-000000000001"],
  ["an id and more", "0197f3a0-0000-7abc-8def-000000000001 "],
  ["some other text", "now"],
])("%s names no job", (_, payload) => {
  expect(readHint(payload)).toBeUndefined();
});
