import { defineConfig } from "vitest/config";

const sources = ["packages/*/src", "tooling/*", "examples/**", "bench"];
const under = (pattern: string) => sources.map((folder) => `${folder}/**/${pattern}`);
const never = ["**/node_modules/**", "**/dist/**"];

/** Packages of this workspace resolve to their sources, so tests need no build. */
const conditions = ["@venturi/source"];
const resolve = { conditions: [...conditions, "node", "import", "module", "default"] };
const ssr = { resolve: { conditions: [...conditions, "node", "import", "module", "default"] } };

export default defineConfig({
  test: {
    projects: [
      {
        resolve,
        ssr,
        test: {
          name: "unit",
          include: under("*.test.ts"),
          exclude: [...never, "**/*.pg.test.ts"],
        },
      },
      {
        resolve,
        ssr,
        test: {
          name: "postgres",
          globalSetup: "./tooling/ci/src/postgres-setup.ts",
          include: under("*.pg.test.ts"),
          exclude: never,
          testTimeout: 30_000,
          hookTimeout: 30_000,
        },
      },
      {
        resolve,
        ssr,
        test: {
          name: "types",
          include: [],
          typecheck: {
            enabled: true,
            only: true,
            include: under("*.test-d.ts"),
            exclude: never,
            tsconfig: "./tsconfig.types.json",
          },
        },
      },
    ],
  },
});
