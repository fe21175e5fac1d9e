import { describe, expect, test } from "vitest";
import { arrowViolations, importsOf, type Manifest } from "./import-arrows.ts";

const manifests: Record<string, Manifest> = {
  "@venturi/core": { dependencies: { ulid: "1", "@standard-schema/spec": "1" } },
  "@venturi/queue": { dependencies: { "@venturi/core": "1" }, devDependencies: { pg: "8" } },
  "@venturi/otel": {
    dependencies: { "@venturi/core": "1" },
    peerDependencies: { "@opentelemetry/api": "1" },
  },
  "@venturi/store-postgres": {
    dependencies: { "@venturi/core": "1" },
    peerDependencies: { pg: "8", kysely: "1" },
  },
  "@venturi/worker": { dependencies: { "@venturi/core": "1" } },
};

function violations(name: string, text: string, file = "src/some/file.ts"): string[] {
  const manifest = manifests[name] ?? {};
  return arrowViolations({ name, manifest, sources: new Map([[file, text]]) });
}

describe("the import arrows", () => {
  test.each([
    ["@venturi/core", 'import { ulid } from "ulid";'],
    ["@venturi/core", 'import type { StandardSchemaV1 } from "@standard-schema/spec";'],
    ["@venturi/core", 'export { parseDuration } from "../duration.ts";'],
    ["@venturi/queue", 'import { channel } from "node:diagnostics_channel";'],
    ["@venturi/queue", 'import { defineTask } from "@venturi/core";'],
    ["@venturi/store-postgres", 'import pg from "pg"; import { sql } from "kysely";'],
    ["@venturi/worker", 'import type { Store } from "@venturi/core";'],
    ["@venturi/otel", 'import { trace } from "@opentelemetry/api";'],
    ["@venturi/otel", 'import { VenturiError } from "@venturi/core";'],
  ])("%s may say %s", (name, text) => {
    expect(violations(name, text)).toEqual([]);
  });

  test.each([
    ["@venturi/core", 'import { readFile } from "node:fs/promises";'],
    ["@venturi/core", 'import * as v from "valibot";'],
    ["@venturi/core", 'import { StandardSchemaV1 } from "@standard-schema/spec";'],
    ["@venturi/core", 'export * from "@venturi/queue";'],
    ["@venturi/core", 'const fs = await import("node:fs");'],
    ["@venturi/queue", 'import pg from "pg";'],
    ["@venturi/queue", 'import type { Pool } from "pg";'],
    ["@venturi/queue", 'type Db = import("kysely").Kysely<unknown>;'],
    ["@venturi/queue", 'import { Worker } from "@venturi/worker";'],
    ["@venturi/worker", 'import { PostgresStore } from "@venturi/store-postgres";'],
    ["@venturi/store-postgres", 'const { Queue } = require("@venturi/queue");'],
    ["@venturi/worker", 'import { testDatabase } from "@venturi-tooling/testing";'],
    ["@venturi/worker", 'import { fixture } from "./fixture.test.ts";'],
    ["@venturi/worker", 'import { clock } from "./testing/manual-clock.ts";'],
    ["@venturi/worker", 'import { Queue } from "../../../queue/src/queue.ts";'],
    ["@venturi/worker", 'import config from "../../package.json";'],
    ["@venturi/worker", 'import { trace } from "@opentelemetry/api";'],
    ["@venturi/otel", 'import type { Queue } from "@venturi/queue";'],
  ])("%s must not say %s", (name, text) => {
    expect(violations(name, text)).toHaveLength(1);
  });

  test("a test may use what its package lists for development", () => {
    const text = 'import { testDatabase } from "@venturi-tooling/testing";';
    expect(violations("@venturi/worker", text, "src/worker.pg.test.ts")).toEqual([]);
    expect(violations("@venturi/worker", text, "src/testing/set-up.ts")).toEqual([]);
  });

  test("a dependency that the arrows do not know is refused in package.json too", () => {
    const manifest = { dependencies: { "@venturi/core": "1" }, peerDependencies: { pg: "8" } };
    expect(arrowViolations({ name: "@venturi/queue", manifest, sources: new Map() })).toEqual([
      "package.json: must not depend on pg",
    ]);
  });

  test("an import of something that package.json does not list is refused", () => {
    const sources = new Map([["src/a.ts", 'import { ulid } from "ulid";']]);
    expect(arrowViolations({ name: "@venturi/core", manifest: {}, sources })).toEqual([
      "src/a.ts: ulid is no dependency",
    ]);
  });

  test("a package without arrows is refused", () => {
    expect(violations("@venturi/surprise", "")).toHaveLength(1);
  });
});

test("imports in comments and strings are none", () => {
  expect(importsOf("a.ts", '// import "pg"\nconst text = `import "pg"`;')).toEqual([]);
});
