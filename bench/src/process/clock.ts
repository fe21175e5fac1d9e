const offset = Number(process.hrtime.bigint()) / 1e6 - performance.now();

/** Milliseconds of the monotonic clock that all processes of the machine share. */
export function now(): number {
  return performance.now() + offset;
}
