/**
 * Milliseconds of the monotonic clock that all processes of the machine share. Asked each time: an offset to
 * performance.now() that is taken while another process has the core is wrong by milliseconds.
 */
export function now(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1_000 + nanoseconds / 1e6;
}
