import { expect, test } from "vitest";
import { readDemoArguments } from "./demo-arguments.ts";

const here = import.meta.dirname;

test("without arguments it is this folder, with two workers", () => {
  expect(readDemoArguments([])).toEqual({ directory: ".", workers: 2, isTemporary: false });
});

test("a directory and a number of workers are taken", () => {
  expect(readDemoArguments([here, "--workers", "4", "--temporary"])).toEqual({
    directory: here,
    workers: 4,
    isTemporary: true,
  });
});

test("--help is the usage", () => {
  expect(readDemoArguments(["--help"])).toEqual({
    usage: expect.stringMatching(/^usage: npm run demo/),
    exitCode: 0,
  });
});

test.each([
  [["--workers", "0"], /^--workers takes a whole number from 1 /],
  [["--workers", "many"], /^--workers takes a whole number from 1 /],
  [["--wrokers", "2"], /'--wrokers'/],
  [[`${here}/absent`], /absent is not a directory/],
  [[`${here}/demo.ts`], /demo\.ts is not a directory/],
  [[here, here], /^one directory at a time/],
])("%j is refused with the reason and the usage", (args, reason) => {
  const refused = readDemoArguments(args);
  expect(refused).toEqual({ usage: expect.stringMatching(reason), exitCode: 2 });
  expect(refused).toEqual({ usage: expect.stringContaining("usage: "), exitCode: 2 });
});
