import { defineConfig } from "vitest/config";

const sources = ["packages/*/src", "tooling/*", "examples/**", "bench"];
const under = (pattern: string) => sources.map((folder) => `${folder}/**/${pattern}`);
const never = ["**/node_modules/**", "**/dist/**"];

/** Packages of this workspace resolve to their sources, so tests need no build. */
const conditions = ["@venturi/source", "node", "development|production"];
const sourceFirst = {
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: ["@venturi/source", "node"] } },
  // Where global set-up runs.
  environments: { __vitest__: { resolve: { conditions } } },
};

/**
 * The files of a run share a process and what it has imported: to start one for each file and import everything anew
 * takes longer than most files themselves. So a file takes away again what it adds to the process; what the packages
 * share by the whole process (CONTRIBUTING.md) is shared by the files as it is by an application's parts.
 */
const shared = { isolate: false };

/** Ends what hangs. A busy machine may take seconds for what is a matter of milliseconds, such as to start a process. */
const patient = { expect: { poll: { timeout: 20_000 } } };

export default defineConfig({
  test: {
    projects: [
      {
        ...sourceFirst,
        test: {
          name: "unit",
          include: under("*.test.ts"),
          exclude: [...never, "**/*.pg.test.ts"],
          testTimeout: 20_000,
          hookTimeout: 20_000,
          ...shared,
          ...patient,
        },
      },
      {
        ...sourceFirst,
        test: {
          name: "postgres",
          globalSetup: "./tooling/ci/src/postgres-setup.ts",
          include: under("*.pg.test.ts"),
          exclude: never,
          testTimeout: 60_000,
          hookTimeout: 60_000,
          ...shared,
          ...patient,
        },
      },
      {
        ...sourceFirst,
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
