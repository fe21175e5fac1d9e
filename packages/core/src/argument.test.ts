import { describe, expect, test } from "vitest";
import { checkMembers, readSignal, toSignal } from "./argument.ts";

describe("options", () => {
  test.each([undefined, null, 1, "text", [], () => undefined])(
    "that are %s are refused",
    (value) => {
      expect(() => checkMembers("options", value, ["delay"], "enqueue")).toThrow(
        expect.objectContaining({ code: "invalid-argument", argument: "options" }),
      );
    },
  );

  test("with a member that nobody reads are refused: it is named, and what there is", () => {
    expect(() => checkMembers("options", { dealy: 1 }, ["delay", "runAt"], "enqueue")).toThrow(
      /dealy is not an option of enqueue: use delay, runAt/,
    );
  });

  test("of other queues are told by their names here, where there is such a one", () => {
    const refusal = (name: string, members: string[]) => () =>
      checkMembers("task", { [name]: 5 }, members, "a task");
    expect(refusal("maxAttempts", ["backstop"])).toThrow(
      "maxAttempts is not an option of a task (what it is elsewhere is `backstop` here): use backstop",
    );
    expect(refusal("jobKey", ["dedupKey"])).toThrow(/`dedupKey` here/);
    expect(refusal("jobKey", ["delay"])).toThrow("jobKey is not an option of a task: use delay");
  });

  test("that are undefined or missing are accepted", () => {
    checkMembers("options", { delay: undefined }, ["delay", "runAt"], "enqueue");
    checkMembers("options", {}, ["delay"], "enqueue");
  });
});

describe("a signal", () => {
  const { signal } = new AbortController();

  test("is given back as it is, as is none", () => {
    expect([toSignal(signal), toSignal(undefined)]).toEqual([signal, undefined]);
    expect([readSignal({ signal }, "run"), readSignal({}, "run")]).toEqual([signal, undefined]);
  });

  test.each([1, "text", {}, new AbortController()])("that is %s is refused", (value) => {
    expect(() => toSignal(value as never)).toThrow(
      expect.objectContaining({ code: "invalid-argument", argument: "signal" }),
    );
  });

  test("misspelt is refused", () => {
    expect(() => readSignal({ sginal: signal } as never, "run")).toThrow(
      /sginal is not an option of run: use signal/,
    );
  });

  test("that throws when it is read is refused, with what it threw", () => {
    const cause = new Error("no");
    const options = {
      get signal(): AbortSignal {
        throw cause;
      },
    };
    expect(() => readSignal(options, "run")).toThrow(expect.objectContaining({ cause }));
  });
});
