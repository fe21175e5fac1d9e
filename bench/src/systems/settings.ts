/** What the harness asks of the process that runs one system. */
export interface DrainSettings {
  readonly databaseUrl: string;
  readonly jobs: number;
  readonly concurrency: number;
  readonly payloadBytes: number;
}

/** The settings as the harness passed them. */
export function readSettings(): DrainSettings {
  return JSON.parse(process.argv[2] ?? "") as DrainSettings;
}

/** A payload of about the size asked for. */
export function payload(index: number, bytes: number): { id: number; pad: string } {
  return { id: index, pad: "x".repeat(Math.max(0, bytes - 18)) };
}

/** Items of an enqueue call, as large as both systems are given. */
export const batchSize = 1_000;
