import { existsSync } from "node:fs";

/** Where Debian's package has it. */
const library = [
  "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1",
  "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1",
].find((path) => existsSync(path));

/**
 * The environment of a process whose wall clock is off as the kernel tells it, where libfaketime is installed;
 * undefined where it is not, and the process has to deceive itself.
 */
export function fakeTime(skewMs: number): Readonly<Record<string, string>> | undefined {
  if (library === undefined || skewMs === 0) return undefined;
  const seconds = Math.round(skewMs / 1_000);
  return {
    LD_PRELOAD: library,
    FAKETIME: `${seconds < 0 ? "" : "+"}${seconds}s`,
    FAKETIME_DONT_FAKE_MONOTONIC: "1",
    FAKETIME_NO_CACHE: "1",
  };
}
