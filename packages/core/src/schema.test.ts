import type { StandardSchemaV1 } from "@standard-schema/spec";
import * as v from "valibot";
import { describe, expect, it } from "vitest";
import type { VenturiError } from "./errors.ts";
import { createValidator } from "./schema.ts";

/** A schema of some other library: refuses everything with the given issues. */
function refusing(...issues: StandardSchemaV1.Issue[]): StandardSchemaV1 {
  return { "~standard": { version: 1, vendor: "other", validate: () => ({ issues }) } };
}

function validating(validate: () => never): StandardSchemaV1 {
  return { "~standard": { version: 1, vendor: "other", validate } };
}

function refusal(schema: StandardSchemaV1, value: unknown, original?: unknown): VenturiError {
  try {
    createValidator(schema, "payload", "send_email")(value, original);
  } catch (error) {
    return error as VenturiError;
  }
  throw new Error("it was accepted");
}

const Email = v.object({ to: v.pipe(v.string(), v.trim(), v.email()), subject: v.string() });

describe("a validator", () => {
  it("gives the schema's output, at once where the schema is synchronous", () => {
    const schema = v.object({
      at: v.pipe(v.string(), v.transform(Number)),
      n: v.optional(v.number(), 5),
    });
    expect(createValidator(schema, "payload", "k")({ at: "7" })).toEqual({ at: 7, n: 5 });
  });

  it("gives a promise of it where the schema is asynchronous", async () => {
    const schema = v.pipeAsync(
      v.string(),
      v.transformAsync(async (text) => text.length),
    );
    const output = createValidator(schema, "payload", "k")("four");
    expect(output).toBeInstanceOf(Promise);
    await expect(output).resolves.toBe(4);
    await expect(createValidator(schema, "payload", "k")(5)).rejects.toMatchObject({
      code: "validation",
      path: "payload",
    });
  });

  it("takes a schema that is a function, as some libraries make them", () => {
    const schema = Object.assign(() => true, {
      "~standard": {
        version: 1 as const,
        vendor: "other",
        validate: (value: unknown) => ({ value }),
      },
    });
    expect(createValidator(schema, "payload", "k")(5)).toBe(5);
  });

  it.each([[undefined], [null], ["string"], [{}], [{ "~standard": {} }], [() => true]])(
    "is not made of %o",
    (schema) => {
      expect(() => createValidator(schema as never, "payload", "k")).toThrow(
        expect.objectContaining({ code: "invalid-argument", argument: "payload" }),
      );
    },
  );
});

describe("a refusal", () => {
  it("names the task, the path and what was expected", () => {
    expect(refusal(Email, { to: "a@example.com", subject: 5 })).toMatchObject({
      code: "validation",
      isRetryable: false,
      path: "payload.subject",
      message:
        'the payload of "send_email" does not match its schema: payload.subject: Invalid type: Expected string (got number)',
      issues: [{ path: ["subject"], message: "Invalid type: Expected string (got number)" }],
    });
  });

  it("names the value itself where that is what was refused", () => {
    expect(refusal(Email, null)).toMatchObject({ path: "payload", issues: [{ path: [] }] });
  });

  it("tells all issues up to twenty, three of them in the message", () => {
    const Row = v.object({ a: v.string(), b: v.string(), c: v.string(), d: v.string() });
    const error = refusal(Row, {});
    expect(error.issues).toHaveLength(4);
    expect(error.message).toMatch(/payload\.a: .*payload\.b: .*payload\.c: .*; and 1 more$/);
    const many = refusal(v.array(v.string()), new Array(100).fill(1));
    expect(many.issues).toHaveLength(20);
  });

  it("reaches into arrays and maps", () => {
    const schema = v.array(v.object({ "unit price": v.number() }));
    expect(refusal(schema, [{ "unit price": 1 }, { "unit price": "1" }]).path).toBe(
      'payload[1]["unit price"]',
    );
  });

  it("reads paths of plain keys and of segments, whatever they are", () => {
    const error = refusal(
      refusing({ message: "no", path: ["a", { key: 0 }, Symbol("s"), { key: {} as PropertyKey }] }),
      {},
    );
    expect(error.path).toBe('payload.a[0]["Symbol(s)"]["?"]');
  });

  it("hints at text where a Date had been given", () => {
    const schema = v.object({ at: v.date() });
    const original = { at: new Date(0) };
    const value = JSON.parse(JSON.stringify(original));
    expect(refusal(schema, value, original).message).toMatch(
      /payload\.at: Invalid type: Expected Date \(got string\); a Date is stored as text, so accept a string and transform it$/,
    );
    expect(refusal(schema, value).message).not.toContain("transform it");
  });

  it("keeps a message that the schema's author wrote", () => {
    const schema = v.pipe(
      v.number("a count, please"),
      v.check((n) => n % 2 === 0, "must be even"),
    );
    expect(refusal(schema, 5).issues).toEqual([{ path: [], message: "must be even" }]);
    expect(refusal(schema, "5").issues).toEqual([{ path: [], message: "a count, please" }]);
  });
});

describe("no message holds a piece of the value", () => {
  const secret = "hunter2-and-more";

  it.each<[string, StandardSchemaV1, unknown]>([
    ["of a wrong format", Email, { to: ` ${secret} `, subject: "x" }],
    ["of a wrong type", v.object({ a: v.number() }), { a: secret }],
    ["of a number", v.pipe(v.number(), v.maxValue(10)), 4_111_111_111],
    ["of a literal", v.literal("x"), secret],
    ["of a picklist", v.picklist(["x", "y"]), secret],
    ["of a variant", v.variant("t", [v.object({ t: v.literal("x") })]), { t: secret }],
    [
      "of a check",
      v.pipe(
        v.string(),
        v.check(() => false),
      ),
      secret,
    ],
    ["of a regular expression", v.pipe(v.string(), v.regex(/^\d$/)), secret],
    [
      "of a message that quotes it",
      v.pipe(
        v.string(),
        v.check(
          () => false,
          (issue) => `bad: ${issue.input}`,
        ),
      ),
      secret,
    ],
    ["of arktype's manner", refusing({ message: `must be a number (was "${secret}")` }), secret],
    ["of effect's manner", refusing({ message: `Expected number, actual "${secret}"` }), secret],
    ["of zod's manner", refusing({ message: `Invalid input: received ${secret}` }), secret],
    [
      "of yup's manner",
      refusing({ message: `must be a number, but the final value was: ${secret}` }),
      { a: [secret] },
    ],
    [
      "that was shortened",
      refusing({ message: `bad: ${secret.slice(0, -1)}…` }),
      `${secret}-`.repeat(9),
    ],
    ["of other manners", refusing({ message: `Expected a number but got ${secret}` }), secret],
    ["that quotes what it was given", refusing({ message: `It got "${secret}"` }), secret],
    ["of a schema that threw", v.pipe(v.string(), v.transform(JSON.parse)), secret],
  ])("%s", (_, schema, value) => {
    const { message, issues, stack } = refusal(schema, value);
    for (const text of [message, JSON.stringify(issues), stack ?? ""]) {
      expect(text).not.toContain(secret.slice(0, 7));
      expect(text).not.toContain("4111");
    }
  });

  const told = (schema: StandardSchemaV1, value: unknown) =>
    refusal(schema, value).issues?.[0]?.message;

  // Nothing that short is looked for in a message.
  it.each([
    ["Invalid type: Expected string but received 42", "Invalid type: Expected string (got number)"],
    ["Invalid input: expected string, received 42", "Invalid input: expected string (got number)"],
    ["Invalid email: Received 42", "Invalid email"],
    ["Expected string, actual 42", "Expected string (got number)"],
    ["must be a string (was 42)", "must be a string"],
    ["must be a `string` type, but the final value was: `42`.", "must be a `string` type"],
    ["no text: got 42", "no text"],
    ["what it received: 42", "what it"],
    ["must be text; instead got 42", "must be text"],
  ])("also where it is short: %s", (message, kept) => {
    expect(told(refusing({ message }), 42)).toBe(kept);
  });

  it.each([
    "no payment was received for this order",
    "got to be paid first",
    "the actual cost is missing",
    "an order that was refused, though received, must be sent back",
  ])("while somebody's own message is kept whole: %s", (message) => {
    const schema = v.pipe(
      v.object({ order: v.string() }),
      v.check(() => false, message),
    );
    expect(told(schema, { order: "o-17" })).toBe(message);
  });

  it("while what was expected is still told", () => {
    expect(told(Email, { to: secret, subject: "x" })).toBe("Invalid email");
    expect(told(v.number(), secret)).toBe("Invalid type: Expected number (got string)");
    expect(told(v.picklist(["x", "y"]), secret)).toBe(
      'Invalid type: Expected ("x" | "y") (got string)',
    );
    expect(told(v.object({ a: v.string() }), {})).toBe('Invalid key: Expected "a" (got undefined)');
    expect(told(refusing({ message: 'must be a number (was "x")' }), "x")).toBe("must be a number");
    expect(told(refusing({ message: "" }), "x")).toBe("is not valid (got string)");
  });
});

describe("a schema that throws", () => {
  it("is a validation error with the cause", () => {
    const boom = new Error("boom");
    const schema = validating(() => {
      throw boom;
    });
    expect(refusal(schema, 1)).toMatchObject({
      code: "validation",
      path: "payload",
      issues: [],
      cause: boom,
      message: 'the payload of "send_email" could not be validated: its schema threw: boom',
    });
  });

  it("later is one, too", async () => {
    const boom = new Error("boom");
    const schema = v.pipeAsync(
      v.string(),
      v.transformAsync(async () => {
        throw boom;
      }),
    );
    await expect(createValidator(schema, "carry", "k")("x")).rejects.toMatchObject({
      code: "validation",
      path: "carry",
      cause: boom,
    });
  });

  it("may throw anything", () => {
    const schema = validating(() => {
      throw undefined;
    });
    expect(refusal(schema, 1).message).toMatch(/undefined was thrown$/);
  });
});

describe("a schema that does not keep to the Standard Schema", () => {
  const answering = (answer: unknown) => validating((() => answer) as () => never);

  it.each([
    ["nothing", undefined],
    ["null", null],
    ["text", "fine"],
    ["issues that are no array", { issues: "bad" }],
    ["issues of nothing", { issues: [null] }],
    ["issues whose path is no list", { issues: [{ message: "no", path: 5 }] }],
    ["a message that cannot be read", { issues: [{ message: Object.create(null) }] }],
    [
      "an object that cannot be read",
      Object.defineProperty({}, "issues", {
        get: () => {
          throw new Error("hands off");
        },
      }),
    ],
  ])("and answers with %s is a validation error, at once and later", async (_, answer) => {
    const error = refusal(answering(answer), 1);
    expect(error).toMatchObject({ code: "validation", path: "payload" });
    expect(error.message).toContain("send_email");
    const later = createValidator(answering(Promise.resolve(answer)), "payload", "k")(1);
    await expect(later).rejects.toMatchObject({ code: "validation" });
  });

  it("and cannot be asked whether its answer is a promise is taken at its word", () => {
    const member = "then";
    const answer = Object.defineProperty({ value: 7 }, member, {
      get: () => {
        throw new Error("hands off");
      },
    });
    expect(createValidator(answering(answer), "payload", "k")(1)).toBe(7);
  });
});
