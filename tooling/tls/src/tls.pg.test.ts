import { readFileSync } from "node:fs";
import { join } from "node:path";
import { inspect } from "node:util";
import { defineTask, isVenturiError, type VenturiError } from "@venturi/core";
import { Queue } from "@venturi/queue";
import { type ConnectOptions, PostgresStore } from "@venturi/store-postgres";
import { Worker } from "@venturi/worker";
import { Kysely, PostgresDialect } from "kysely";
import pg from "pg";
import * as v from "valibot";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createAuthority } from "./certificates.ts";
import { startTlsServer, type TlsServer } from "./tls-server.ts";

const Greet = defineTask({ kind: "greet", payload: v.object({ name: v.string() }) });

let tls: TlsServer;
let admin: pg.Pool;

beforeAll(async () => {
  tls = await startTlsServer();
  const url = new URL(tls.adminUrl);
  url.pathname = "/app";
  admin = new pg.Pool({ connectionString: url.href });
  // The server may be gone before its connections are.
  admin.on("error", () => undefined);
  await using store = await PostgresStore.connect(withPassword());
  await store.migrate();
  // Both users work; what the one has made is for the other as well.
  await admin.query("grant all on all tables in schema public to queue_users");
  await admin.query("grant all on all sequences in schema public to queue_users");
});

afterAll(async () => {
  await admin?.end();
  await tls?.[Symbol.asyncDispose]();
});

const trusting = () => ({ ca: tls.authority.certificate });
const identified = () => ({
  ca: tls.authority.certificate,
  cert: tls.certificateUser.certificate,
  key: tls.certificateUser.key,
});
const withPassword = (): ConnectOptions => ({ connectionString: tls.passwordUrl, ssl: trusting() });
const withCertificate = (): ConnectOptions => ({
  connectionString: tls.certificateUrl,
  ssl: identified(),
});

/** A host that is an address has no name to compare with the certificate's: it is given apart. */
const byAddress = () => tls.passwordUrl.replace("@localhost:", "@127.0.0.1:");

/** Whether each connection of a user is encrypted, and what it did last. */
async function connectionsOf(
  user: string,
): Promise<{ ssl: boolean; listens: boolean; dn: string | null }[]> {
  const { rows } = await admin.query(
    `select s.ssl, s.client_dn as dn, a.query ilike 'listen %' or a.query = '' as listens
     from pg_stat_activity a join pg_stat_ssl s using (pid) where a.usename = $1`,
    [user],
  );
  return rows;
}

/** A job that is enqueued while a worker sleeps runs at once: it was told by a notification. */
async function expectWakeUp(store: PostgresStore, queue: Pick<Queue, "enqueue">): Promise<void> {
  let greeted: (name: string) => void = () => undefined;
  const greeting = new Promise<string>((resolve) => {
    greeted = resolve;
  });
  await using worker = new Worker(store, { pollMax: "10m" }).register(Greet, ({ name }) =>
    greeted(name),
  );
  const running = worker.run();
  await expect
    .poll(
      async () =>
        (
          await admin.query(
            "select from pg_stat_activity where query ilike 'listen %' or query = ''",
          )
        ).rowCount,
    )
    .toBeGreaterThan(0);
  await queue.enqueue(Greet({ name: "Ada" }));
  expect(await greeting).toBe("Ada");
  await worker.stop();
  await running;
}

describe("over TLS", () => {
  it.each([
    ["a private authority and a password", withPassword, "password_user"],
    ["a private authority and a client certificate", withCertificate, "cert_user"],
  ])("with %s, the pool and the LISTEN connection are both encrypted", async (_, options, user) => {
    await using store = await PostgresStore.connect(options());
    await expectWakeUp(store, new Queue(store));
    const subscription = store.listen({ onWake: () => undefined });
    await subscription.listening;
    const connections = await connectionsOf(user);
    expect(connections.some(({ listens }) => listens)).toBe(true);
    expect(connections.some(({ listens }) => !listens)).toBe(true);
    expect(connections.every(({ ssl }) => ssl)).toBe(true);
    if (user === "cert_user")
      expect(new Set(connections.map(({ dn }) => dn))).toEqual(new Set(["/CN=cert_user"]));
    await subscription.close();
  });

  it("files that the connection string names hold for both as well", async () => {
    const url = new URL(tls.certificateUrl);
    url.searchParams.set("sslmode", "verify-full");
    url.searchParams.set("sslrootcert", join(tls.folder, "ca.pem"));
    url.searchParams.set("sslcert", join(tls.folder, "client.pem"));
    url.searchParams.set("sslkey", join(tls.folder, "client.key"));
    await using store = await PostgresStore.connect({ connectionString: url.href });
    await expectWakeUp(store, new Queue(store));
    expect(readFileSync(join(tls.folder, "ca.pem"), "utf8")).toBe(tls.authority.certificate);
  });

  it("a server that is reached by its address shows the certificate of the name that is expected", async () => {
    const ssl = { ...trusting(), servername: "localhost" };
    await using store = await PostgresStore.connect({ connectionString: byAddress(), ssl });
    await expectWakeUp(store, new Queue(store));
  });

  it("of several hosts, the one that answers is asked for the certificate of its own name", async () => {
    const several = (url: string) => url.replace("@localhost:", "@absent.invalid:5432,localhost:");
    await using store = await PostgresStore.connect({
      connectionString: several(tls.passwordUrl),
      listenConnectionString: several(tls.passwordUrl),
      ssl: trusting(),
    });
    await expectWakeUp(store, new Queue(store));
    const connections = await connectionsOf("password_user");
    expect(connections.every(({ ssl }) => ssl)).toBe(true);
  });

  it("a borrowed pool lends its TLS to the LISTEN connection, its key too", async () => {
    const pool = new pg.Pool({ connectionString: tls.certificateUrl, ssl: identified() });
    const store = new PostgresStore({ pool });
    await expectWakeUp(store, new Queue(pool));
    await store.close();
    await pool.end();
  });

  it("a LISTEN connection of its own goes where listenConnectionString says, with the ssl that was given", async () => {
    const pool = new pg.Pool({ connectionString: tls.passwordUrl, ssl: trusting() });
    const listening = new URL(tls.certificateUrl);
    listening.searchParams.set("application_name", "the listener");
    const db = new Kysely<unknown>({ dialect: new PostgresDialect({ pool }) });
    const store = new PostgresStore({
      db,
      listenConnectionString: listening.href,
      ssl: identified(),
    });
    const subscription = store.listen({ onWake: () => undefined });
    await subscription.listening;
    const { rows } = await admin.query(
      "select a.usename, s.ssl from pg_stat_activity a join pg_stat_ssl s using (pid) where application_name = 'the listener'",
    );
    expect(rows).toEqual([{ usename: "cert_user", ssl: true }]);
    await subscription.close();
    await expectWakeUp(store, new Queue(db));
    await store.close();
    await db.destroy();
  });

  it("a lean queue enqueues through a pool with a client certificate, also in a transaction", async () => {
    const pool = new pg.Pool({ connectionString: tls.certificateUrl, ssl: identified() });
    const queue = new Queue(pool);
    const client = await pool.connect();
    await client.query("begin");
    const id = await queue.within(client).enqueue(Greet({ name: "Bob" }), { delay: "1h" });
    await client.query("commit");
    client.release();
    const other = await queue.enqueue(Greet({ name: "Eve" }), { delay: "1h" });
    expect((await connectionsOf("cert_user")).every(({ ssl }) => ssl)).toBe(true);
    await using store = await PostgresStore.connect(withPassword());
    const { jobs } = await new Queue(store).jobs({ ids: [id, other] });
    expect(jobs).toHaveLength(2);
    await pool.end();
  });
});

describe("what does not fit is a database error that will not pass, and says nothing secret", () => {
  const stranger = () => createAuthority("somebody else");

  const cases: [string, () => Promise<ConnectOptions>, RegExp][] = [
    [
      "a server of an authority that is not trusted",
      async () => ({ ...withPassword(), ssl: { ca: (await stranger()).certificate } }),
      /certificate/i,
    ],
    [
      "a server of a private authority where none is given",
      async () => ({ ...withPassword(), ssl: true }),
      /certificate/i,
    ],
    [
      "a server with another name than the one that is expected",
      async () => ({
        connectionString: byAddress(),
        ssl: { ...trusting(), servername: "elsewhere.example" },
      }),
      /altnames/i,
    ],
    [
      "a client certificate of somebody else's authority",
      async () => {
        const { certificate, key } = await (await stranger()).issue("cert_user");
        return { ...withCertificate(), ssl: { ...trusting(), cert: certificate, key } };
      },
      /./,
    ],
    [
      "a client certificate for another user",
      async () => {
        const { certificate, key } = await tls.authority.issue("password_user");
        return { ...withCertificate(), ssl: { ...trusting(), cert: certificate, key } };
      },
      /certificate authentication failed/,
    ],
    [
      "no client certificate",
      async () => ({ ...withCertificate(), ssl: trusting() }),
      /certificate/,
    ],
    [
      "an authority beside a connection string that speaks of TLS itself, which goes before",
      async () => ({
        ...withPassword(),
        connectionString: `${tls.passwordUrl}?sslmode=verify-full`,
      }),
      /certificate/i,
    ],
    [
      "no TLS where the server wants it",
      async () => ({ connectionString: tls.passwordUrl }),
      /no encryption/,
    ],
  ];

  it.each(cases)("%s", async (_, makeOptions, why) => {
    const options = await makeOptions();
    const error = await failureOf(PostgresStore.connect(options));
    expect(error).toMatchObject({ code: "database", isRetryable: false });
    expect(error.message).toMatch(why);
    expectNoSecret(error, options);

    // The same through a pool of the application's, for a lean queue.
    const { connectionString, ssl } = options;
    const pool = new pg.Pool({ connectionString, ...(ssl === undefined ? {} : { ssl }) });
    const refused = await failureOf(new Queue(pool).enqueue(Greet({ name: "nobody" })));
    expect(refused).toMatchObject({ code: "database", isRetryable: false });
    expectNoSecret(refused, options);
    await pool.end();
  });

  it("a worker whose server is not trusted ends with the error instead of waiting for it to pass", async () => {
    const { connectionString } = withPassword();
    const pool = new pg.Pool({ connectionString, ssl: { ca: (await stranger()).certificate } });
    const store = new PostgresStore({ pool });
    const error = await failureOf(new Worker(store).register(Greet, () => undefined).run());
    expect(error).toMatchObject({ code: "database", isRetryable: false });
    await store.close();
    await pool.end();
  });
});

async function failureOf(promise: Promise<unknown>): Promise<VenturiError> {
  const error = await promise.then(
    () => new Error("it succeeded"),
    (reason: unknown) => reason,
  );
  if (isVenturiError(error)) return error;
  throw error;
}

function expectNoSecret(error: Error, { ssl }: ConnectOptions): void {
  const { key } = typeof ssl === "object" ? ssl : {};
  const secrets = [tls.password, ...(typeof key === "string" ? [key.split("\n")[1] ?? ""] : [])];
  for (const shown of [
    error.message,
    JSON.stringify(error),
    String(error.stack),
    inspect(error, { depth: 10 }),
  ])
    for (const secret of secrets) expect(shown).not.toContain(secret);
}
