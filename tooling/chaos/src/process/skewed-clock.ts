/** Puts this process's wall clock off, as a machine without time synchronisation has it. */
export function skewClock(skewMs: number): void {
  if (skewMs === 0) return;
  const RealDate = Date;
  const now = () => RealDate.now() + skewMs;
  globalThis.Date = new Proxy(RealDate, {
    construct: (target, args, newTarget) =>
      Reflect.construct(target, args.length === 0 ? [now()] : args, newTarget),
    get: (target, property) => (property === "now" ? now : Reflect.get(target, property)),
  });
}
