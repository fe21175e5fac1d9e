import { testDatabase } from "@venturi-tooling/testing";
import pg from "pg";
import { expect, it } from "vitest";
import { PostgresStore } from "./postgres-store.ts";
import { failureOf } from "./testing/failure-of.ts";
import { job } from "./testing/store-fixture.ts";
import { until } from "./testing/until.ts";

const { url, pool } = await testDatabase();

/** The connection string with a host before its own, where nobody listens. */
const behindDeadHost = url.replace(/@([^/]*)/, "@127.0.0.1:1,$1");

it("a store finds the host that answers, for its pool and for listening", async () => {
  await using store = await PostgresStore.connect({ connectionString: behindDeadHost });
  let woken = 0;
  const subscription = store.listen({
    onWake: () => {
      woken += 1;
    },
  });
  await subscription.listening;
  const before = woken;
  await store.enqueue({ jobs: [job("k")] });
  await until(async () => woken > before);
});

it("a connection of its own for listening finds it as well", async () => {
  await using store = new PostgresStore({ pool, listenConnectionString: behindDeadHost });
  await store.listen({ onWake: () => undefined }).listening;
});

it("a host that takes no writes is passed over", async () => {
  const name = new URL(url).pathname.slice(1);
  await pool.query(
    `alter database ${pg.escapeIdentifier(name)} set default_transaction_read_only = on`,
  );
  const twice = url.replace(/@([^/]*)/, "@$1,$1");
  const failure = await failureOf(PostgresStore.connect({ connectionString: twice }));
  await pool.query(
    `begin read write; alter database ${pg.escapeIdentifier(name)} reset default_transaction_read_only; commit`,
  );
  expect(failure).toMatchObject({ code: "database", sqlState: "25006", isRetryable: true });
  await using store = await PostgresStore.connect({ connectionString: twice });
  await store.enqueue({ jobs: [job("k")] });
});
