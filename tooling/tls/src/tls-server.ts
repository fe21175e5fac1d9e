import { chownSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  chooseServerUser,
  type EmbeddedPostgres,
  makeWorkFolder,
  startEmbedded,
} from "@venturi-tooling/postgres";
import pg from "pg";
import { type Authority, createAuthority, type Identity } from "./certificates.ts";

/** A server that lets two users in, and those over TLS alone. */
export interface TlsServer extends AsyncDisposable {
  /** Whose certificate the server shows. */
  readonly authority: Authority;
  /** As its superuser, without TLS. */
  readonly adminUrl: string;
  /** Of a user that shows a certificate of its own, and has no password. */
  readonly certificateUrl: string;
  readonly certificateUser: Identity;
  /** Of a user with a password. */
  readonly passwordUrl: string;
  readonly password: string;
  readonly server: EmbeddedPostgres;
  /** Holds `ca.pem`, `client.pem` and `client.key`, for connection strings that name files. */
  readonly folder: string;
}

const password = "s3cret-of-the-user";

/** Starts PostgreSQL with a certificate of a private authority, for the host name `localhost`. */
export async function startTlsServer(): Promise<TlsServer> {
  const authority = await createAuthority("private authority");
  const identity = await authority.issue("database", [{ type: "dns", value: "localhost" }]);
  const certificateUser = await authority.issue("cert_user");
  const user = chooseServerUser();
  const folder = makeWorkFolder(user);
  const place = (name: string, text: string): string => {
    const file = join(folder, name);
    writeFileSync(file, text, { mode: 0o600 });
    if (user) chownSync(file, user.uid, user.gid);
    return file;
  };
  place("client.pem", certificateUser.certificate);
  place("client.key", certificateUser.key);
  const settings = {
    ssl: "on",
    ssl_cert_file: place("server.pem", identity.certificate),
    ssl_key_file: place("server.key", identity.key),
    ssl_ca_file: place("ca.pem", authority.certificate),
    hba_file: place(
      "hba.conf",
      [
        "hostnossl all postgres      127.0.0.1/32 scram-sha-256",
        "hostssl   all cert_user     127.0.0.1/32 cert",
        "hostssl   all password_user 127.0.0.1/32 scram-sha-256",
      ].join("\n"),
    ),
    password_encryption: "scram-sha-256",
  };
  const server = await startEmbedded({ durable: false, settings });
  await makeUsers(server.url);
  const { port } = new URL(server.url);
  return {
    authority,
    certificateUser,
    password,
    server,
    folder,
    adminUrl: server.url,
    certificateUrl: `postgres://cert_user@localhost:${port}/app`,
    passwordUrl: `postgres://password_user:${password}@localhost:${port}/app`,
    async [Symbol.asyncDispose]() {
      await server.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function makeUsers(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  // The superuser's password was made under the server's own default.
  for (const text of [
    "create role queue_users",
    "create role cert_user login in role queue_users",
    `create role password_user login password '${password}' in role queue_users`,
    "create database app owner queue_users",
  ])
    await client.query(text);
  await client.end();
}
