import pg from "pg";
/** Takes the figures of one drain on one database, over a connection that the system measured knows nothing of. */
export class Meter {
    #client;
    #jobs;
    #ends = [];
    #handled = 0;
    #walStart = 0;
    #walEnqueued = 0;
    #enqueueMs = 0;
    #drainStart = 0;
    #allHandled = () => undefined;
    /** Resolves at the end of the last handler. */
    allHandled = new Promise((resolve) => {
        this.#allHandled = resolve;
    });
    constructor(databaseUrl, jobs) {
        this.#client = new pg.Client(databaseUrl);
        this.#jobs = jobs;
    }
    /** Between checkpoints: no page images, which depend on when the last checkpoint was, and not on the system. */
    async enqueue(work) {
        await this.#client.connect();
        await this.#client.query("create extension if not exists pg_stat_statements");
        await this.#client.query("checkpoint");
        this.#walStart = await this.#wal();
        const startedAt = performance.now();
        await work();
        this.#enqueueMs = performance.now() - startedAt;
        this.#walEnqueued = await this.#wal();
    }
    /** Counts the end of a handler. */
    handled = () => {
        this.#handled += 1;
        if (this.#handled % (this.#jobs / 10) === 0)
            this.#ends.push(performance.now());
        if (this.#handled === this.#jobs)
            this.#allHandled();
    };
    async drain(work, queueTable) {
        await this.#client.query("select pg_stat_statements_reset()");
        this.#drainStart = performance.now();
        await work();
        const stoppedAt = performance.now();
        const walEnd = await this.#wal();
        const statements = await this.#number(`select sum(calls)::float8 as n from pg_stat_statements s join pg_database d on d.oid = s.dbid
       where d.datname = current_database() and query not like '%pg_stat_statements%' and query not like '%pg_current_wal%'`);
        const hotShare = queueTable === null
            ? null
            : await this.#number(`select n_tup_hot_upd::float8 / nullif(n_tup_upd, 0) as n from pg_stat_user_tables where relname = '${queueTable}'`);
        await this.#client.end();
        const starts = [this.#drainStart, ...this.#ends];
        const perSecond = (jobs, ms) => jobs / (ms / 1000);
        const lastEnd = this.#ends.at(-1) ?? stoppedAt;
        return {
            enqueuePerSecond: perSecond(this.#jobs, this.#enqueueMs),
            handledPerSecond: perSecond(this.#jobs, lastEnd - this.#drainStart),
            drainPerSecond: perSecond(this.#jobs, stoppedAt - this.#drainStart),
            byTenth: this.#ends.map((end, index) => Math.round(perSecond(this.#jobs / 10, end - (starts[index] ?? end)))),
            walBytesPerJob: {
                enqueue: (this.#walEnqueued - this.#walStart) / this.#jobs,
                drain: (walEnd - this.#walEnqueued) / this.#jobs,
            },
            statementsPerJob: statements / this.#jobs,
            hotShare,
        };
    }
    #wal() {
        return this.#number("select (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::float8 as n /* pg_current_wal */");
    }
    async #number(sql) {
        const { rows } = await this.#client.query(sql);
        return rows[0]?.n ?? Number.NaN;
    }
}
