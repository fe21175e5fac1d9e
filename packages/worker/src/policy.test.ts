import { Backoff, defineTask, silentLogger } from "@venturi/core";
import * as v from "valibot";
import { beforeEach, describe, expect, test } from "vitest";
import { HandlerRegistry } from "./handler-registry.ts";
import { Policy } from "./policy.ts";
import { Slots } from "./slots.ts";
import { ManualClock } from "./testing/manual-clock.ts";
import { staleClaim } from "./testing/stale-claims.ts";

const workers = new Backoff({ base: "50s", cap: "300s" });
const payload = v.object({ n: v.number() });

let clock: ManualClock;
let registry: HandlerRegistry;
let policy: Policy;
/** What the schema of "later" waits for. */
let decoding: Promise<boolean>;

beforeEach(() => {
  clock = new ManualClock();
  decoding = Promise.resolve(true);
  registry = new HandlerRegistry({ leaseMs: 60_000, backstop: 20 }, new Slots(1));
  const backoff = ({ n }: { readonly n: number }) => new Backoff({ base: n, cap: n });
  const later = v.pipeAsync(
    payload,
    v.checkAsync(() => decoding),
  );
  for (const task of [
    defineTask({ kind: "at once", payload, backoff }),
    defineTask({ kind: "later", payload: later, backoff }),
  ])
    registry.add(task, () => undefined);
  policy = new Policy({
    ...{ clock, registry, backoff: workers, jitterFraction: 0, logger: silentLogger },
  });
});

describe("the backoff of a claim that is recovered", () => {
  const backoffOf = (kind: string, text = '{"n":7000}') =>
    policy.recoveryBackoff(staleClaim("a", 1, { kind, payload: text }));

  test.each(["at once", "later"])("is its task's, where that decodes %s", async (kind) => {
    expect(await backoffOf(kind)).toMatchObject({ baseMs: 7_000 });
    expect(clock.pending).toBe(0);
  });

  test.each(["at once", "later"])("is the worker's, where that refuses %s", async (kind) => {
    decoding = Promise.resolve(false);
    expect(await backoffOf(kind, kind === "later" ? undefined : "{}")).toBe(workers);
  });

  test("is the worker's, where its schema has not answered within a second", async () => {
    decoding = new Promise(() => undefined);
    let found: Backoff | undefined;
    void backoffOf("later").then((backoff) => {
      found = backoff;
    });
    await clock.advance(999);
    expect(found).toBeUndefined();
    await clock.advance(1);
    expect(found).toBe(workers);
  });

  test("is the worker's for a kind that it does not know", async () => {
    expect(await backoffOf("unknown")).toBe(workers);
  });
});
