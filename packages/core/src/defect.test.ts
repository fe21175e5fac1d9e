import { AssertionError } from "node:assert";
import { describe, expect, test } from "vitest";
import { isDefect } from "./defect.ts";
import { TaskError } from "./task-error.ts";

function thrownBy(act: () => unknown): unknown {
  try {
    act();
  } catch (error) {
    return error;
  }
  throw new Error("nothing was thrown");
}

const endless = (): number => endless() + 1;

describe("a defect shows a bug", () => {
  test.each([
    ["a name that does not exist", new ReferenceError("x is not defined")],
    ["text that does not parse", thrownBy(() => JSON.parse("{"))],
    ["a failed assertion", new AssertionError({ message: "no" })],
    [
      "an assertion of a library without the name",
      Object.assign(new Error("no"), { code: "ERR_ASSERTION" }),
    ],
    ["an exhausted call stack", thrownBy(endless)],
    ["a member of undefined", thrownBy(() => (undefined as unknown as { a: number }).a)],
    ["a TypeError with an ordinary cause", new TypeError("bad", { cause: new Error("inner") })],
    ["an error of another realm", { name: "ReferenceError", message: "x is not defined" }],
  ])("%s", (_, error) => {
    expect(isDefect(error)).toBe(true);
  });
});

describe("an ordinary failure shows the world", () => {
  const refused = Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
  test.each([
    ["an error", new Error("no such account")],
    ["a number out of range", thrownBy(() => (1).toFixed(101))],
    ["a failed fetch", new TypeError("fetch failed", { cause: refused })],
    ["a fetch cut off", new TypeError("terminated", { cause: { code: "UND_ERR_SOCKET" } })],
    ["a failed fetch in a browser", new TypeError("Failed to fetch")],
    ["a network failure by its cause alone", new TypeError("request failed", { cause: refused })],
    ["a decision of the handler", TaskError.retry(new ReferenceError("x is not defined"))],
    ["undefined", undefined],
    ["text", "TypeError"],
    [
      "an object whose getters throw",
      new Proxy(
        {},
        {
          get: () => {
            throw new Error("no");
          },
        },
      ),
    ],
  ])("%s", (_, error) => {
    expect(isDefect(error)).toBe(false);
  });
});
