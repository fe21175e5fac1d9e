import { Backoff, defineTask, isVenturiError, type Task } from "@venturi/core";
import * as v from "valibot";
import { beforeEach, describe, expect, test } from "vitest";
import { HandlerRegistry } from "./handler-registry.ts";
import { Slots } from "./slots.ts";

const A = defineTask({ kind: "a", payload: v.object({}) });
const Careful = defineTask({
  kind: "careful",
  payload: v.object({}),
  lease: "2m",
  backstop: null,
  backoff: new Backoff({ base: "1s" }),
});
const handler = () => undefined;

let registry: HandlerRegistry;

beforeEach(() => {
  registry = new HandlerRegistry({ leaseMs: 900_000, backstop: 20 }, new Slots(4));
});

function refused(act: () => void): string | undefined {
  try {
    act();
  } catch (error) {
    if (isVenturiError(error) && error.code === "invalid-argument") return error.argument;
    throw error;
  }
  return undefined;
}

test("what a task says about lease and backstop goes before what the worker says", () => {
  registry.add(A, handler);
  registry.add(Careful, handler);
  expect(registry.get("a")).toMatchObject({ leaseMs: 900_000, backstop: 20 });
  expect(registry.get("careful")).toMatchObject({ leaseMs: 120_000, backstop: null });
  expect(registry.kinds).toEqual(["a", "careful"]);
  expect(registry.shortestLeaseMs).toBe(120_000);
});

describe("refused is", () => {
  test("a kind that is registered already", () => {
    registry.add(A, handler);
    expect(refused(() => registry.add(A, handler))).toBe("kind");
  });

  test("what is no task or no handler", () => {
    expect(refused(() => registry.add({ kind: "x" } as Task, handler))).toBe("task");
    expect(refused(() => registry.add(A, undefined as never))).toBe("handler");
  });

  test("a cap that is no count, and an unknown option", () => {
    for (const cap of [0, -1, 1.5, Number.NaN]) {
      expect(refused(() => registry.add(A, handler, { cap }))).toBe("cap");
    }
    expect(refused(() => registry.add(A, handler, { caps: 2 } as object))).toBe("caps");
    expect(registry.kinds).toEqual([]);
  });
});
