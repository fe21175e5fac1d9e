import { describe, expect, it } from "vitest";
import { readMember } from "./read-member.ts";

describe("a member of whatever it may be", () => {
  it("is that of an object, an array or a function", () => {
    expect(readMember({ a: 1 }, "a")).toBe(1);
    expect(readMember(["x"], 0)).toBe("x");
    expect(
      readMember(
        Object.assign(() => 0, { b: 2 }),
        "b",
      ),
    ).toBe(2);
    expect(readMember(new TypeError("t"), "message")).toBe("t");
  });

  it.each([undefined, null, "text", 7, 7n, true, Symbol("s"), {}])(
    "is undefined of %o, which has none of that name",
    (value) => expect(readMember(value, "length of it")).toBeUndefined(),
  );

  it("is undefined where reading it throws", () => {
    const hostile = {
      get message(): string {
        throw new Error("boo");
      },
    };
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    expect([readMember(hostile, "message"), readMember(proxy, "message")]).toEqual([
      undefined,
      undefined,
    ]);
  });
});
