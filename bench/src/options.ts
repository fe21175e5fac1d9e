import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { type ScenarioName, scenarios } from "./scenarios/index.ts";
import { type Sizes, sizes } from "./sizes.ts";

const names = Object.keys(scenarios) as ScenarioName[];

export const usage = `npm run bench -- [--quick | --toy] [--only drain,latency] [--rounds N] [--redis URL] [--out FOLDER]

  --quick   some minutes instead of about two hours
  --toy     for correctness only: tiny sizes; writes no report unless --out says where
  --only    these scenarios: ${names.join(", ")};
            what the report there says about the others stays, where it was found in the same way
  --rounds  how many times every contender has its turn
  --redis   also BullMQ on the Redis server at this URL; what its queue holds is removed
  --out     where results.json and README.md go, docs/performance otherwise
  --store-costs  with --toy: from now on these costs are what later ones are compared with (costs.json)

Ends with 1 when a system failed, lost a job or ran one twice. DATABASE_URL names a PostgreSQL server to use, with
pg_stat_statements preloaded and a superuser; without it one is started.`;

export interface BenchOptions {
  readonly help: boolean;
  readonly sizes: Sizes;
  readonly chosen: readonly ScenarioName[];
  readonly redisUrl: string | null;
  /** Where the report goes; null: nowhere. */
  readonly folder: string | null;
  readonly storeCosts: boolean;
}

export function parseOptions(args: readonly string[]): BenchOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      quick: { type: "boolean", default: false },
      toy: { type: "boolean", default: false },
      only: { type: "string" },
      rounds: { type: "string" },
      redis: { type: "string" },
      out: { type: "string" },
      "store-costs": { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  const named = sizes[values.toy ? "toy" : values.quick ? "quick" : "full"];
  const rounds = values.rounds === undefined ? named.rounds : Number(values.rounds);
  if (!Number.isInteger(rounds) || rounds < 1)
    throw new Error(`--rounds must be 1 or more\n\n${usage}`);
  // Long by itself, it has fewer by default than the others.
  const pressureRounds = values.rounds === undefined ? named.pressure.rounds : rounds;
  const only = values.only?.split(",") ?? names;
  const unknown = only.filter((name) => !(name in scenarios));
  if (unknown.length > 0) throw new Error(`no scenario ${unknown.join(", ")}\n\n${usage}`);
  const usual = fileURLToPath(new URL("../../docs/performance", import.meta.url));
  return {
    help: values.help,
    sizes: { ...named, rounds, pressure: { ...named.pressure, rounds: pressureRounds } },
    chosen: names.filter((name) => only.includes(name)),
    redisUrl: values.redis ?? null,
    folder: values.out ?? (values.toy ? null : usual),
    storeCosts: values["store-costs"],
  };
}
