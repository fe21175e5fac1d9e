import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isVenturiError, type VenturiError } from "./errors.ts";
import { decodeJson, encodeJson, MAX_JSON_DEPTH, MAX_JSON_PARTS } from "./payload-codec.ts";
import { unstorableText } from "./text.ts";

function refusal(value: unknown): VenturiError {
  try {
    encodeJson(value, "payload", "send_email");
  } catch (error) {
    if (isVenturiError(error) && error.code === "serialization") return error;
    throw error;
  }
  throw new Error("it was encoded");
}

function roundTrip(value: unknown): unknown {
  return decodeJson(encodeJson(value, "payload"), "payload");
}

function nested(depth: number, innermost: unknown): unknown {
  let value = innermost;
  for (let level = 0; level < depth; level += 1) value = level % 2 === 0 ? [value] : { a: value };
  return value;
}

class Point {
  x = 1;
  y = 2;
  get sum() {
    return this.x + this.y;
  }
}

describe("encoding", () => {
  it.each([
    ["null", null],
    ["false", false],
    ["zero", 0],
    ["empty text", ""],
    ["a number in the payload's place", 42],
    ["an empty array", []],
    ["arrays of all sorts", [[1], ["a"], [{ x: 1 }], [[1]], [null, false, 0, ""]]],
    ["the largest and the smallest numbers", [Number.MAX_VALUE, Number.MIN_VALUE, 2 ** 53 - 1]],
    ["text with quotes and controls", { 'a"b': "\\ \n \u0001 \u2028 😀" }],
    ["the harmless text backslash-u", "\\u0000 \\ud800"],
    ["keys of Object.prototype", { constructor: 1, toString: "x", hasOwnProperty: null }],
    ["an object without a prototype", Object.assign(Object.create(null), { a: 1 })],
  ])("keeps %s", (_, value) => {
    expect(roundTrip(value)).toEqual(value);
  });

  it("keeps whatever JSON can hold, as JSON.stringify writes it", () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: "grapheme", noUnicodeString: false }), (value) => {
        fc.pre(!JSON.stringify(value).includes("\\u0000"));
        expect(encodeJson(value, "payload")).toBe(JSON.stringify(value));
      }),
    );
  });

  it("either keeps a value exactly or refuses it", () => {
    const anything = fc.anything({
      withBigInt: true,
      withBoxedValues: true,
      withDate: true,
      withMap: true,
      withSet: true,
      withTypedArray: true,
      withSparseArray: true,
      withUnicodeString: true,
      withNullPrototype: true,
    });
    fc.assert(
      fc.property(anything, (value) => {
        let text: string;
        try {
          text = encodeJson(value, "payload");
        } catch (error) {
          expect(error).toMatchObject({
            code: "serialization",
            path: expect.stringMatching(/^payload/),
          });
          return;
        }
        expect(text).toBe(JSON.stringify(value));
        expect(encodeJson(JSON.parse(text), "payload")).toBe(text);
        const texts: string[] = [];
        JSON.parse(text, (name, member: unknown) => {
          texts.push(name, ...(typeof member === "string" ? [member] : []));
          return member;
        });
        for (const each of texts) expect(unstorableText(each)).toBeNull();
      }),
      { numRuns: 2000, examples: [[{ toString: 0 }]] },
    );
  });

  it("writes a Date as its ISO text", () => {
    expect(roundTrip({ at: new Date(0) })).toEqual({ at: "1970-01-01T00:00:00.000Z" });
    expect(roundTrip(new Date(0))).toBe("1970-01-01T00:00:00.000Z");
  });

  it("leaves out members that are undefined, and writes null for such elements and for holes", () => {
    expect(encodeJson({ a: undefined, b: 1 }, "payload")).toBe('{"b":1}');
    expect(encodeJson([undefined, 1], "payload")).toBe("[null,1]");
    // biome-ignore lint/suspicious/noSparseArray: a hole is what is tested
    expect(encodeJson([1, , 3], "payload")).toBe("[1,null,3]");
    // The same where the value needs care for another reason.
    expect(encodeJson({ a: undefined, at: new Date(0), b: [undefined] }, "payload")).toBe(
      '{"at":"1970-01-01T00:00:00.000Z","b":[null]}',
    );
  });

  it("writes an instance of a class as its own properties", () => {
    expect(roundTrip({ p: new Point() })).toEqual({ p: { x: 1, y: 2 } });
  });

  it("honours toJSON, once and with the key", () => {
    const keys: unknown[] = [];
    const money = {
      toJSON(key: unknown) {
        keys.push(key);
        return { amount: 1, toJSON: () => "never asked" };
      },
    };
    // A function is no data, also where JSON.stringify would skip it.
    expect(() => encodeJson({ money }, "payload")).toThrow(/payload.money.toJSON is a function/);
    expect(keys).toEqual(["money"]);
    const self = {
      a: 1,
      toJSON() {
        return this;
      },
    };
    expect(() => encodeJson(self, "payload")).toThrow(/payload.toJSON is a function/);
    class Decimal {
      digits = "1.50";
      toJSON() {
        return this.digits;
      }
    }
    expect(encodeJson([new Decimal(), new URL("https://a.example/b")], "payload")).toBe(
      '["1.50","https://a.example/b"]',
    );
    class Itself {
      a = 1;
      toJSON() {
        return this;
      }
    }
    expect(encodeJson(new Itself(), "payload")).toBe('{"a":1}');
  });

  it("leaves out symbol keys and turns −0 into 0, as JSON does", () => {
    expect(encodeJson({ [Symbol("s")]: 1, zero: -0 }, "payload")).toBe('{"zero":0}');
  });

  it("keeps a member named __proto__, which stays a member", () => {
    const given = JSON.parse('{"__proto__":{"polluted":true},"at":1}');
    const read = roundTrip(given) as Record<string, unknown>;
    expect(Object.getPrototypeOf(read)).toBe(Object.prototype);
    expect(Object.keys(read)).toEqual(["__proto__", "at"]);
    expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
    // With care, too.
    const careful = encodeJson({ inner: given, at: new Date(0) }, "payload");
    expect(careful).toBe(
      '{"inner":{"__proto__":{"polluted":true},"at":1},"at":"1970-01-01T00:00:00.000Z"}',
    );
  });

  it("takes values of another realm as its own", () => {
    const foreign = runInNewContext("({ list: [1, { at: new Date(0) }], none: undefined })");
    expect(encodeJson(foreign, "payload")).toBe('{"list":[1,{"at":"1970-01-01T00:00:00.000Z"}]}');
    expect(refusal(runInNewContext("({ a: new Map() })")).path).toBe("payload.a");
  });

  it("allows one value in several places", () => {
    const shared = { a: new Date(0) };
    expect(roundTrip([shared, shared])).toEqual([roundTrip(shared), roundTrip(shared)]);
  });

  it("allows text of 20 MB", () => {
    const text = "x".repeat(20_000_000);
    expect(encodeJson({ text }, "payload")).toHaveLength(text.length + 11);
  });
});

describe("what JSON or jsonb cannot hold is refused with its path:", () => {
  it.each<[string, unknown, string]>([
    ["undefined at the top", undefined, "payload"],
    ["a function at the top", () => 1, "payload"],
    ["a symbol at the top", Symbol("s"), "payload"],
    ["a BigInt", { a: { b: [1, 2n] } }, "payload.a.b[1]"],
    ["NaN", { a: Number.NaN }, "payload.a"],
    ["Infinity", [Number.POSITIVE_INFINITY], "payload[0]"],
    ["−Infinity", [[Number.NEGATIVE_INFINITY]], "payload[0][0]"],
    ["a function as a member", { "unit price": () => 1 }, 'payload["unit price"]'],
    ["a symbol as an element", [1, Symbol("s")], "payload[1]"],
    ["a Map", { a: new Map([[1, 2]]) }, "payload.a"],
    ["a Set", { a: new Set([1]) }, "payload.a"],
    ["a WeakMap", new WeakMap(), "payload"],
    ["a RegExp", { a: /x/ }, "payload.a"],
    ["an Error", { a: new Error("x") }, "payload.a"],
    ["a Promise", { a: Promise.resolve(1) }, "payload.a"],
    ["a boxed NaN", { a: Object(Number.NaN) }, "payload.a"],
    ["a boxed BigInt", { a: Object(1n) }, "payload.a"],
    ["a Buffer", { a: Buffer.from("x") }, "payload.a"],
    ["a Uint8Array", { a: new Uint8Array(2) }, "payload.a"],
    ["an ArrayBuffer", { a: new ArrayBuffer(2) }, "payload.a"],
    ["an invalid Date", { a: new Date(Number.NaN) }, "payload.a"],
    ["U+0000 in text", { a: "x\u0000y" }, "payload.a"],
    ["U+0000 in a key", { "a\u0000b": 1 }, 'payload["a\\u0000b"]'],
    ["half a surrogate pair", { a: ["😀".slice(0, -1)] }, "payload.a[0]"],
    ["half a surrogate pair in a key", { "\ud800": 1 }, 'payload["\\ud800"]'],
    ["text with U+0000 at the top", "\u0000", "payload"],
    ["NaN from toJSON", { a: { toJSON: () => Number.NaN } }, "payload.a"],
    ["undefined from toJSON", { a: { toJSON: () => undefined } }, "payload.a"],
    ["a BigInt within toJSON's result", { a: { toJSON: () => ({ b: 1n }) } }, "payload.a.b"],
  ])("%s", (_, value, path) => {
    const error = refusal(value);
    expect(error.path).toBe(path);
    expect(error.message).toContain(
      `the payload of "send_email" cannot be stored as JSON: ${path} `,
    );
  });

  it("a BigInt, also where somebody taught BigInt to become JSON", () => {
    const prototype = BigInt.prototype as { toJSON?: () => string };
    prototype.toJSON = () => "1";
    try {
      expect(refusal({ a: 1n }).path).toBe("payload.a");
    } finally {
      delete prototype.toJSON;
    }
  });

  it("a cycle, through whatever it goes", () => {
    const loop: Record<string, unknown> = { a: { b: [1] } };
    (loop["a"] as { b: unknown[] }).b.push(loop);
    expect(refusal(loop).message).toMatch(/payload\.a\.b\[1\] refers back to a value/);
    const list: unknown[] = [];
    list.push(list);
    expect(refusal({ list }).path).toBe("payload.list[0]");
    const endless = { toJSON: () => ({ next: endless }) };
    expect(refusal(endless).message).toMatch(/levels deep/);
  });

  it("nesting that nobody's stack bears, without exhausting this one", () => {
    expect(roundTrip(nested(MAX_JSON_DEPTH, 1))).toEqual(nested(MAX_JSON_DEPTH, 1));
    expect(refusal(nested(MAX_JSON_DEPTH + 1, 1)).message).toMatch(/more than 1000 levels deep/);
    const error = refusal(nested(200_000, 1));
    expect(error.message).toMatch(/more than 1000 levels deep/);
    expect(error.message.length).toBeLessThan(600);
  });

  it("a graph that shares its branches and would grow without end", () => {
    let graph: unknown = [1];
    for (let level = 0; level < 60; level += 1) graph = [graph, graph];
    expect(refusal(graph).message).toContain(`exceed ${MAX_JSON_PARTS} parts`);
    expect(refusal(new Array(2 ** 32 - 1)).message).toContain("parts");
  }, 60_000);

  it("text longer than jsonb can hold", () => {
    const text = "x".repeat(2 ** 26);
    expect(refusal({ text }).path).toBe("payload.text");
    expect(refusal(Array.from({ length: 20 }, () => text)).path).toBe("payload[0]");
    expect(refusal("\u0001".repeat(2 ** 24)).message).toMatch(/larger than 67108864 characters/);
  }, 60_000);

  it.each<[string, () => unknown]>([
    [
      "a toJSON that throws",
      () => ({
        a: {
          toJSON() {
            throw new Error("boom");
          },
        },
      }),
    ],
    [
      "a getter that throws",
      () => ({
        get a() {
          throw new Error("boom");
        },
      }),
    ],
    [
      "a proxy that throws",
      () => ({
        a: new Proxy(
          {},
          {
            getPrototypeOf() {
              throw new Error("boom");
            },
            ownKeys() {
              throw new Error("boom");
            },
          },
        ),
      }),
    ],
  ])("%s, with the cause", (_, make) => {
    const error = refusal(make());
    expect(error.path).toBe("payload.a");
    expect(error.cause).toMatchObject({ message: "boom" });
  });

  it("a revoked proxy", () => {
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    expect(refusal({ a: proxy }).path).toBe("payload.a");
  });

  it("without a piece of the value in the message", () => {
    for (const value of [
      { a: "hunter2\u0000" },
      { a: Symbol("hunter2") },
      { a: ["hunter2", 1n] },
    ]) {
      expect(refusal(value).message).not.toContain("hunter2");
    }
  });
});

describe("decoding", () => {
  it("tells text that is not JSON, without quoting it", () => {
    expect.assertions(3);
    try {
      decodeJson('{"password":"hunter2', "payload", "send_email");
    } catch (error) {
      expect(error).toMatchObject({ code: "serialization", path: "payload" });
      expect(String(error)).not.toContain("hunter2");
      expect("cause" in (error as Error)).toBe(false);
    }
  });

  it("rounds numbers beyond a double, as JSON.parse does", () => {
    expect(decodeJson("[1e400,9007199254740993]", "payload")).toEqual([
      Number.POSITIVE_INFINITY,
      9007199254740992,
    ]);
  });
});

describe("a value whose getters answer differently each time", () => {
  it("is read once: what was checked is what is written", () => {
    let reads = 0;
    const value = {
      list: [1],
      get n() {
        reads += 1;
        return reads === 1 ? 1 : Number.NaN;
      },
    };
    expect(encodeJson(value, "payload")).toBe('{"list":[1],"n":1}');
    expect(reads).toBe(1);
  });

  it("does not slip in what cannot be stored", () => {
    const answers = ["fine", "\u0000", 5n, () => 1, Number.NaN];
    for (let start = 0; start < answers.length; start += 1) {
      let reads = start;
      const value = {
        at: new Date(0),
        get x() {
          reads += 1;
          return answers[(reads - 1) % answers.length];
        },
      };
      let text: string | undefined;
      try {
        text = encodeJson(value, "payload");
      } catch (error) {
        expect(error).toMatchObject({ code: "serialization" });
      }
      if (text !== undefined) expect(JSON.parse(text)).toHaveProperty("x", "fine");
    }
  });

  it("keeps a member named __proto__ a member", () => {
    const value = JSON.parse('{"__proto__": {"a": 1}, "b": 2}') as object;
    expect(encodeJson(value, "payload")).toBe('{"__proto__":{"a":1},"b":2}');
  });
});
