import { invalidArgument, readMember } from "@venturi/core";
import { hasMethods } from "../has-methods.ts";
import type { AdaptedExecutor } from "./adapted-executor.ts";
import { DriverError, textMember } from "./driver-error.ts";

/** A Prisma client, or the client of one of its interactive transactions, by its shape. */
export interface PrismaLike {
  $queryRawUnsafe(query: string, ...values: never[]): PromiseLike<unknown>;
}

/**
 * Enqueues through a Prisma client of PostgreSQL. Throws `invalid-argument`.
 *
 * @example
 * ```ts
 * const queue = new Queue(prisma(client));
 * await client.$transaction((tx) => queue.within(prisma(tx)).enqueue(SendEmail({ to })));
 * ```
 */
export function prisma(client: PrismaLike): AdaptedExecutor {
  if (!hasMethods(client, ["$queryRawUnsafe"])) {
    throw invalidArgument(
      "client",
      "is no Prisma client",
      "pass new PrismaClient(…), or the tx of client.$transaction(async (tx) => …)",
    );
  }
  const isTransaction = !hasMethods(client, ["$connect"]);
  return {
    handle: client,
    isTransaction,
    isPool: !isTransaction,
    async query(text, params) {
      try {
        const rows = await client.$queryRawUnsafe(text, ...([...params] as never[]));
        return { rows: rows as readonly unknown[] };
      } catch (error) {
        throw driverError(error);
      }
    },
  };
}

/** What the driver said, which Prisma keeps in `meta` under an error code of its own. */
function driverError(error: unknown): unknown {
  const meta = readMember(error, "meta");
  const fault = readMember(readMember(meta, "driverAdapterError"), "cause");
  // Before driver adapters, `meta` held code and message itself, and the message what the server had in its detail.
  const code = textMember(fault, "originalCode") ?? textMember(meta, "code");
  const message = textMember(fault, "originalMessage") ?? textMember(meta, "message");
  if (code !== undefined) {
    const detail = textMember(fault, "detail") ?? textMember(meta, "message");
    return new DriverError(message ?? code, { code, detail, cause: error });
  }
  const network = networkCodes[textMember(fault, "kind") ?? textMember(error, "code") ?? ""];
  if (network === undefined) return error;
  return new DriverError(innermost(textMember(error, "message")) || network, {
    code: network,
    cause: error,
  });
}

/** Prisma's messages begin with several lines about the call that failed. */
function innermost(message = ""): string {
  return /Message: `(.*)`\s*$/s.exec(message)?.[1] ?? message.trim();
}

const networkCodes: Readonly<Record<string, string>> = {
  DatabaseNotReachable: "ECONNREFUSED",
  P1001: "ECONNREFUSED",
  ConnectionClosed: "ECONNRESET",
  P1017: "ECONNRESET",
  SocketTimeout: "ETIMEDOUT",
  P1008: "ETIMEDOUT",
  // Waited for a connection in vain.
  P2024: "CONNECT_TIMEOUT",
};
