import { chaosGate } from "./chaos-gate.ts";
import { consumerStages } from "./consumer-gates.ts";
import { documentGates } from "./documents.ts";
import { commandGate, type Gate, type Stage } from "./gate.ts";
import { nodePath, otherNodes } from "./nodes.ts";
import { Packed } from "./packing.ts";
import { root } from "./paths.ts";
import { smokeGate } from "./smoke-gate.ts";
import {
  arrowsGate,
  buildGate,
  knipGate,
  linksGate,
  lintGate,
  referenceGate,
  schemaGate,
  sizeGate,
  typeCheckGates,
} from "./static-gates.ts";
import { vitestGate } from "./vitest-gate.ts";

/** Where the gates find their servers, and a folder outside the repository for their files. */
export interface GateContext {
  /** The server at hand: PostgreSQL 18, or what DATABASE_URL names. */
  readonly serverUrl: string;
  /** The oldest PostgreSQL that is supported. */
  readonly oldServerUrl: string;
  readonly workFolder: string;
}

/** What is tested on another Node. */
function nodeGates(major: number, serverUrl: string): Gate[] {
  const options = { project: "unit", node: nodePath(major) } as const;
  return [vitestGate(`unit tests on Node ${major}`, options), smokeGate(major, serverUrl)];
}

/** Every benchmark in small, on a server of its own: jobs lost or doubled, and costs that have risen. */
const benchGate: Gate = commandGate("benchmarks at toy size", {
  program: process.execPath,
  args: ["bench/run.mjs", "--toy"],
  cwd: root,
  env: { DATABASE_URL: undefined, TEST_DATABASE_URL: undefined },
});

/** Everything that must hold. */
export function allStages({ serverUrl, oldServerUrl, workFolder }: GateContext): Stage[] {
  const packed = new Packed(`${workFolder}/packed`);
  const on = (url: string) => ({ TEST_DATABASE_URL: url });
  const [checkBlocks, ...runBlocks] = documentGates(serverUrl);
  return [
    { lanes: 2, gates: [lintGate, arrowsGate, buildGate, ...typeCheckGates] },
    {
      lanes: 2,
      gates: [
        knipGate,
        referenceGate,
        linksGate,
        ...(checkBlocks ? [checkBlocks] : []),
        sizeGate,
        schemaGate("schema.sql", serverUrl),
        schemaGate("schema.sql on PostgreSQL 14", oldServerUrl),
      ],
    },
    {
      lanes: 2,
      gates: [
        vitestGate("unit tests", { project: "unit" }),
        ...otherNodes.flatMap((major) => nodeGates(major, serverUrl)),
        vitestGate("type tests", { project: "types" }),
      ],
    },
    {
      // Side by side: they wait more than they compute. Each runs one file at a time, since some measure time.
      lanes: 2,
      gates: [
        vitestGate("postgres tests", { project: "postgres", env: on(serverUrl) }),
        vitestGate("postgres tests on PostgreSQL 14, in other time zones", {
          project: "postgres",
          env: { ...on(oldServerUrl), TZ: "America/New_York" },
          // Those of the tooling start servers of their own.
          folders: ["packages", "examples"],
        }),
      ],
    },
    // Side by side: both have idle phases, count rather than time, and leave room for a busy machine where they time.
    { lanes: 2, gates: [benchGate, chaosGate, ...runBlocks] },
    { lanes: 1, gates: [packed.packGate] },
    { lanes: 2, gates: packed.lintGates },
    ...consumerStages(`${workFolder}/consumers`, packed, serverUrl),
  ];
}
