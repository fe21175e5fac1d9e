// A process in whatever time zone TZ says: it uses a store and tells every instant that it saw.
import pg from "pg";
import { PostgresStore } from "../postgres-store.ts";
import { claimRequest, enqueue, job, settlement, startWorker } from "./store-fixture.ts";

const [connectionString, ...runAts] = process.argv.slice(2);
const pool = new pg.Pool({ connectionString });
const store = new PostgresStore({ pool });
const scheduled = runAts.map((runAt) => job("later", { runAt: Number(runAt) }));
const ids = await enqueue(store, job("now"), job("now", { delayMs: 3_600_000 }), ...scheduled);
const worker = await startWorker(store, { kinds: ["now"] });
const { jobs } = await store.claim(claimRequest(worker, ["now"]));
const claimed = jobs.map(({ leaseExpiresAt }) => leaseExpiresAt.getTime());
const finishedSince = new Date();
await store.settle({ worker, settlements: jobs.map((run) => settlement(run, "dead")) });
const records = await Promise.all(ids.map((id) => store.findJob({ id })));
const journal = await Promise.all(ids.map((jobId) => store.readJournal({ jobId })));
const found = await store.queryJobs({
  ...{ statuses: null, kinds: null, ids, limit: 100, before: null },
  finishedSince: new Date(finishedSince.getTime() - 60_000),
  finishedUntil: new Date(finishedSince.getTime() + 60_000),
});
const ms = (date: Date | null | undefined) => date?.getTime() ?? null;
const answer = {
  zone: new Date(0).getTimezoneOffset(),
  now: finishedSince.getTime(),
  claimed,
  found: found.jobs.map(({ id }) => id),
  jobs: records.map(({ job }) => [
    job?.id,
    ms(job?.createdAt),
    ms(job?.visibleAt),
    ms(job?.finishedAt),
  ]),
  journal: journal.map(({ entries }) =>
    entries.map((entry) => [ms(entry.startedAt), ms(entry.recordedAt)]),
  ),
};
process.stdout.write(`${JSON.stringify(answer)}\n`);
await pool.end();
