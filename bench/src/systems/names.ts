/** Every system that can be measured. */
export const systemNames = [
  "venturi",
  "graphile-worker",
  "pg-boss",
  "bullmq-postgres",
  "bullmq-redis",
  "limit",
  "floor",
] as const;

export type SystemName = (typeof systemNames)[number];

/** What each system keeps of a job that has ended, and what it throws away. */
export const whatIsKept: Readonly<Record<SystemName, string>> = {
  venturi:
    "every job and every run, until `cleanup` is called: the body once, one journal row a run",
  "graphile-worker": "nothing: a job that ends well is deleted",
  "pg-boss": "the job's row with its last state and output, for 7 days by default; no row a run",
  "bullmq-postgres": "by default the job's row; at its best settings (`removeOnComplete`) nothing",
  "bullmq-redis": "at its best settings nothing; the server here writes nothing to disk",
  limit: "the body and one journal row a run, and nothing else that a queue has to do",
  floor: "nothing that counts: one insert, one notification, one claim",
};
