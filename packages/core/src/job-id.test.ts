import fc from "fast-check";
import { uuidToULID } from "ulid";
import { describe, expect, it } from "vitest";
import { createJobIds, fromUuid, isJobId, jobIdHalves, toJobId, toUuid } from "./job-id.ts";

const anyUuid = fc
  .bigInt({ min: 0n, max: 2n ** 128n - 1n })
  .map((bits) => bits.toString(16).padStart(32, "0"))
  .map((hex) => hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5"));

/** A generator fed by the given clock and a repeatable randomness. */
function idsAt(now: () => number) {
  let state = 1;
  const random = () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
  return createJobIds({ now, random });
}

describe("a job id", () => {
  it.each([
    "01ARZ3NDEKTSV4RRFFQ69G5FAV",
    "00000000000000000000000000",
    "7ZZZZZZZZZZZZZZZZZZZZZZZZZ",
  ])("is a ULID, such as %s", (id) => {
    expect(isJobId(id)).toBe(true);
    expect(toJobId(id, "id")).toBe(id);
  });

  it.each([
    ["empty text", ""],
    ["25 characters", "01ARZ3NDEKTSV4RRFFQ69G5FA"],
    ["27 characters", "01ARZ3NDEKTSV4RRFFQ69G5FAVX"],
    ["lower case", "01arz3ndektsv4rrffq69g5fav"],
    ["more than 128 bits", "8ZZZZZZZZZZZZZZZZZZZZZZZZZ"],
    ["a letter that is left out (I)", "01ARZ3NDEKTSV4RRFFQ69G5FAI"],
    ["a letter that is left out (U)", "01ARZ3NDEKTSV4RRFFQ69G5FAU"],
    ["a line break behind it", "01ARZ3NDEKTSV4RRFFQ69G5FAV\n"],
    ["a uuid", "01563e3a-b5d3-d676-4c61-efb99302bd5b"],
    ["a number", 1],
    ["null", null],
    ["an object that turns into one", { toString: () => "01ARZ3NDEKTSV4RRFFQ69G5FAV" }],
  ])("is not %s", (_, value) => {
    expect(isJobId(value)).toBe(false);
    expect(() => toJobId(value, "id")).toThrow(
      expect.objectContaining({ code: "invalid-argument", argument: "id" }),
    );
  });
});

describe("the uuid of an id", () => {
  it("holds its 16 bytes", () => {
    expect(toUuid("01ARZ3NDEKTSV4RRFFQ69G5FAV")).toBe("01563e3a-b5d3-d676-4c61-efb99302bd5b");
    expect(toUuid("00000000000000000000000000")).toBe("00000000-0000-0000-0000-000000000000");
    expect(toUuid("7ZZZZZZZZZZZZZZZZZZZZZZZZZ")).toBe("ffffffff-ffff-ffff-ffff-ffffffffffff");
  });

  it("leads back to the id, for all 128 bits, as the ulid library's conversion does", () => {
    fc.assert(
      fc.property(anyUuid, (uuid) => {
        const id = fromUuid(uuid);
        expect(isJobId(id)).toBe(true);
        expect(toUuid(id)).toBe(uuid);
        expect(uuidToULID(uuid)).toBe(id);
        expect(fromUuid(uuid.toUpperCase())).toBe(id);
      }),
    );
  });

  it("sorts as the id does", () => {
    fc.assert(
      fc.property(anyUuid, anyUuid, (one, other) => {
        expect(fromUuid(one) < fromUuid(other)).toBe(one < other);
      }),
    );
  });

  it("exists of ids only, and ids of uuids only", () => {
    expect(() => toUuid("nonsense")).toThrow(/id is not a job id \(got "nonsense"\)/);
    expect(() => toUuid("İ1ARZ3NDEKTSV4RRFFQ69G5FAV")).toThrow(/not a job id/);
    expect(() => fromUuid("01563e3ab5d3d6764c61efb99302bd5b")).toThrow(/not a uuid/);
    expect(() => fromUuid("01563e3a-b5d3-d676-4c61-efb99302bd5g")).toThrow(/not a uuid/);
  });

  it("exists of text only, whatever a value turns into", () => {
    const refused = expect.objectContaining({ code: "invalid-argument" });
    const id = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
    const uuid = "01563e3a-b5d3-d676-4c61-efb99302bd5b";
    for (const make of [(text: string) => [text], (text: string) => ({ toString: () => text })]) {
      expect(() => toUuid(make(id) as unknown as string)).toThrow(refused);
      expect(() => fromUuid(make(uuid) as unknown as string)).toThrow(refused);
    }
  });

  it("exists of exactly what is an id, and ids of exactly what is a uuid, one character off at any place", () => {
    const refused = expect.objectContaining({ code: "invalid-argument" });
    fc.assert(
      fc.property(
        anyUuid,
        fc.nat(35),
        fc.string({ unit: "binary", minLength: 1, maxLength: 1 }),
        (uuid, place, odd) => {
          const id = fromUuid(uuid);
          const otherId = id.slice(0, place) + odd + id.slice(place + 1);
          if (isJobId(otherId)) expect(fromUuid(toUuid(otherId))).toBe(otherId);
          else expect(() => toUuid(otherId)).toThrow(refused);
          const other = uuid.slice(0, place) + odd + uuid.slice(place + 1);
          if (/^[\da-f-]{36}$/i.test(other) && (odd === "-") === (uuid[place] === "-"))
            expect(toUuid(fromUuid(other))).toBe(other.toLowerCase());
          else expect(() => fromUuid(other)).toThrow(refused);
        },
      ),
    );
  });

  it("splits into two 64-bit halves", () => {
    expect(jobIdHalves("01ARZ3NDEKTSV4RRFFQ69G5FAV")).toEqual([
      0x01563e3ab5d3d676n,
      0x4c61efb99302bd5bn,
    ]);
    expect(jobIdHalves("7ZZZZZZZZZZZZZZZZZZZZZZZZZ")).toEqual([2n ** 64n - 1n, 2n ** 64n - 1n]);
  });
});

describe("generated ids", () => {
  it("lead with the time", () => {
    const next = idsAt(() => 1_469_918_176_385);
    expect(next()).toMatch(/^01ARYZ6S41/);
    expect(isJobId(next())).toBe(true);
  });

  it("strictly increase, whatever the clock does", () => {
    const time = fc.oneof(
      fc.nat(10),
      fc.integer({ min: 1e12, max: 2e12 }),
      fc.double({ min: 0, max: 1e12, noNaN: true }),
    );
    fc.assert(
      fc.property(fc.array(time, { minLength: 2, maxLength: 50 }), (times) => {
        const clock = times.values();
        const next = idsAt(() => clock.next().value ?? 0);
        const ids = times.map(next);
        expect(new Set(ids).size).toBe(ids.length);
        expect([...ids].sort()).toEqual(ids);
        expect(ids.every(isJobId)).toBe(true);
      }),
    );
  });

  it("differ within one millisecond, 100,000 of them", () => {
    const next = idsAt(() => 1e12);
    const ids = Array.from({ length: 100_000 }, next);
    expect(new Set(ids).size).toBe(100_000);
    expect([...ids].sort()).toEqual(ids);
  });

  it("borrow the next millisecond where the randomness of one is used up", () => {
    const next = createJobIds({ now: () => 5, random: () => 1 - 2 ** -53 });
    expect([next(), next(), next()]).toEqual([
      "0000000005ZZZZZZZZZZZZZZZZ",
      "0000000006ZZZZZZZZZZZZZZZZ",
      "0000000007ZZZZZZZZZZZZZZZZ",
    ]);
  });

  it.each([[Number.NaN], [Number.POSITIVE_INFINITY], [2 ** 48]])(
    "need a clock that tells the time, not %s",
    (time) => {
      const next = createJobIds({ now: () => time, random: () => 0 });
      expect(next).toThrow(expect.objectContaining({ code: "invalid-argument", argument: "now" }));
    },
  );

  it("can be made before 1970 was over", () => {
    expect([-5, 0].map((time) => createJobIds({ now: () => time, random: () => 0 })())).toEqual([
      "00000000010000000000000000",
      "00000000010000000000000000",
    ]);
  });

  it("come from nowhere else: two generators with the same sources agree", () => {
    const [one, other] = [idsAt(() => 0), idsAt(() => 0)];
    expect([one(), one()]).toEqual([other(), other()]);
  });
});
