import { testDatabase } from "@venturi-tooling/testing";
import pg from "pg";
import { expect, it } from "vitest";
import { startChild } from "./testing/child.ts";

const { url, pool } = await testDatabase();
const quotedName = pg.escapeIdentifier(decodeURIComponent(new URL(url).pathname.slice(1)));

/** Instants that clocks on the wall show twice, or not at all, somewhere; and the ends of what is stored. */
const runAts = [
  Date.UTC(2099, 10, 1, 5, 30),
  Date.UTC(2099, 10, 1, 6, 30),
  Date.UTC(2099, 2, 8, 7, 0),
  Date.UTC(2099, 2, 28, 20, 30, 0, 1),
  Date.UTC(2099, 3, 4, 14, 45),
  Date.UTC(2099, 3, 4, 15, 15),
  Date.UTC(9999, 0, 1),
];

it("a process in New York, a database in Kolkata and one in UTC speak of the same instants", async () => {
  await pool.query(`alter database ${quotedName} set timezone = 'Asia/Kolkata'`);
  await pool.query(`alter database ${quotedName} set datestyle = 'SQL, DMY'`);
  for (const [TZ, offset] of [
    ["America/New_York", 300],
    ["UTC", 0],
    ["Asia/Kolkata", -330],
    // Half an hour is what its clocks are moved by.
    ["Australia/Lord_Howe", -600],
  ] as const) {
    const child = startChild(
      new URL("./testing/instants.ts", import.meta.url),
      [url, ...runAts.map(String)],
      { TZ },
    );
    const seen = JSON.parse(await child.next());
    expect(await child.end()).toBe(0);
    expect(seen.zone).toBe(offset);
    const [first, second, ...later] = seen.jobs;
    expect(Math.abs(first[1] - seen.now)).toBeLessThan(60_000);
    expect(second[2] - second[1]).toBe(3_600_000);
    expect(later.map((job: number[]) => job[2])).toEqual(runAts);
    expect(seen.found).toEqual([first[0]]);
    const [[startedAt, recordedAt]] = seen.journal[0];
    expect(seen.claimed).toEqual([expect.closeTo(startedAt + 900_000, -1)]);
    expect(first[3]).toBe(recordedAt);
    const { rows } = await pool.query(
      `select venturi_ulid(b.id) as id, trunc(extract(epoch from b.created_at) * 1000)::float8 as created,
        trunc(extract(epoch from q.visible_at) * 1000)::float8 as visible
      from venturi_jobs b left join venturi_queue q on q.job_id = b.id where venturi_ulid(b.id) = any ($1) order by array_position($1::text[], venturi_ulid(b.id))`,
      [seen.jobs.map((job: unknown[]) => job[0])],
    );
    expect(rows.map(({ id, created, visible }) => [id, created, visible])).toEqual(
      seen.jobs.map((job: unknown[]) => job.slice(0, 3)),
    );
  }
});
