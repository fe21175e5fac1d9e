import fc from "fast-check";

/** Stands in whatever nobody but a handler may see; it must not turn up in a record or an error. */
export const secret = "s3cr3t-";

/** Text that breaks what takes text apart: SQL, JSON, logs, identifiers, arrays, formats. */
export const hostileTexts: readonly string[] = [
  "",
  " ",
  "\u0000",
  "a\u0000b",
  "\ud800",
  "\udfff\ud800",
  "\\u0000",
  "😀".repeat(200),
  "'",
  "''",
  "\\",
  "\\'",
  '"',
  "$1",
  "$$",
  "%s %n %",
  "{1,2}",
  '{"a": 1}',
  "null",
  "NULL",
  "undefined",
  "NaN",
  "-infinity",
  "'; drop table venturi_jobs; --",
  "'); delete from venturi_queue; --",
  "x' or '1'='1",
  "1; select pg_sleep(60)",
  "$fn$; drop schema public cascade; $fn$",
  "\u202e",
  "\n\r\t\b",
  "__proto__",
  "constructor",
  "prototype",
  "toString",
  "hasOwnProperty",
  "then",
  "toJSON",
  "x".repeat(513),
  "9".repeat(400),
];

export const text: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom(...hostileTexts),
  fc.string({ unit: "binary", maxLength: 40 }),
  fc.string({ maxLength: 20 }),
);

export const number: fc.Arbitrary<number> = fc.oneof(
  fc.constantFrom(
    0,
    -0,
    1,
    -1,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    Number.NEGATIVE_INFINITY,
    Number.MAX_SAFE_INTEGER,
    Number.MIN_SAFE_INTEGER,
    Number.MAX_VALUE,
    Number.MIN_VALUE,
    2 ** 31,
    2 ** 31 - 1,
    -(2 ** 31),
    2 ** 63,
    8.64e15,
    8.64e15 + 1,
    1e300,
    -1e300,
  ),
  fc.double(),
  fc.integer(),
);

const handsOff = (): never => {
  throw new Error("hands off");
};

/** What answers in its own way when it is looked at; made by {@link open}, since whoever generates it looks too. */
class Trap {
  readonly make: () => unknown;

  constructor(make: () => unknown) {
    this.make = make;
  }
}

const trap: fc.Arbitrary<unknown> = fc
  .tuple(text, fc.nat(7))
  .map(([name, kind]) => new Trap(() => traps[kind]?.(name)));

const traps: readonly ((name: string) => unknown)[] = [
  () => new Proxy({}, { get: handsOff, has: handsOff, ownKeys: handsOff }),
  () => {
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    return proxy;
  },
  (name) => Object.defineProperty({}, name, { get: handsOff, enumerable: true }),
  (name) => {
    let reads = 0;
    const get = () => {
      reads += 1;
      return reads % 2 === 1 ? "fine" : [Number.NaN, 5n, "\u0000"][reads % 3];
    };
    return Object.defineProperty({}, name, { get, enumerable: true });
  },
  () => {
    const round: Record<string, unknown> = {};
    round["self"] = round;
    return round;
  },
  (name) => ({ toJSON: () => name }),
  () => ({ toJSON: handsOff }),
  (name) => Object.assign(new Error(name), { code: name, cause: name }),
];

/** A generated input with its traps set. */
export function open(input: unknown): unknown {
  if (input instanceof Trap) return input.make();
  if (Array.isArray(input))
    return Object.keys(input).length === input.length ? input.map(open) : input;
  if (typeof input !== "object" || input === null) return input;
  if (Object.getPrototypeOf(input) !== Object.prototype) return input;
  const copy: Record<string | symbol, unknown> = { ...input };
  for (const key of Object.keys(copy)) if (key !== "__proto__") copy[key] = open(copy[key]);
  return copy;
}

const oddities: fc.Arbitrary<unknown> = fc.constantFrom<unknown>(
  Symbol("s"),
  handsOff,
  class Foo {},
  new Map([[1, 2]]),
  /x/,
  5n,
);

/** Anything at all, often nearly right. */
export const anything: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 3, arbitrary: text },
  { weight: 2, arbitrary: number },
  { weight: 2, arbitrary: trap },
  { weight: 1, arbitrary: oddities },
  { weight: 1, arbitrary: fc.constantFrom<unknown>(undefined, null, true, false, [], {}) },
  {
    weight: 3,
    arbitrary: fc.anything({
      key: text,
      maxDepth: 3,
      maxKeys: 4,
      withBigInt: true,
      withBoxedValues: true,
      withDate: true,
      withMap: true,
      withSet: true,
      withNullPrototype: true,
      withObjectString: true,
      withSparseArray: true,
      withTypedArray: true,
    }),
  },
);

/** A value that JSON and jsonb hold, its texts marked as secret. */
export const json: fc.Arbitrary<unknown> = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, depthSize: "small" },
    text.map((value) => secret + value.replace(/[\0\p{Surrogate}]/gu, "")),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.integer(),
    fc.boolean(),
    fc.constant(null),
    fc.array(tie("value"), { maxLength: 4 }),
    fc.dictionary(
      text.map((value) => value.replace(/[\0\p{Surrogate}]/gu, "")),
      tie("value"),
      { maxKeys: 4 },
    ),
  ),
})).value;

/** Members by name, some of them right, some anything, some missing, some that nobody knows. */
export function members(
  right: Readonly<Record<string, fc.Arbitrary<unknown>>>,
): fc.Arbitrary<Record<string, unknown>> {
  const wrong = Object.fromEntries(
    Object.entries(right).map(([name, arbitrary]) => [
      name,
      fc.oneof({ weight: 4, arbitrary }, { weight: 1, arbitrary: anything }),
    ]),
  );
  return fc
    .tuple(
      fc.record(wrong, { requiredKeys: [] }),
      fc.option(fc.tuple(text, anything), { freq: 8, nil: null }),
    )
    .map(([known, unknown]) =>
      unknown === null || unknown[0] === "__proto__"
        ? known
        : { ...known, [unknown[0]]: unknown[1] },
    );
}
