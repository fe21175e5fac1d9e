import { PrismaPg } from "@prisma/adapter-pg";
import { Queue } from "@venturi/queue";
import { prisma as adapt } from "@venturi/queue/adapters";
import type { DriverKind } from "../driver.ts";
import { PrismaClient } from "../generated/prisma/client.ts";

export const prismaDriver: DriverKind = {
  name: "Prisma with its driver adapter",
  connect(connectionString) {
    const client = new PrismaClient({ adapter: new PrismaPg({ connectionString, max: 4 }) });
    const queue = new Queue(adapt(client));
    return {
      producer: queue,
      outside: adapt(client),
      producerOf: (names) => new Queue(adapt(client), names),
      transaction: (work) =>
        client.$transaction(
          (tx) =>
            work({
              within: () => queue.within(adapt(tx)),
              store: adapt(tx),
              run: (text) => tx.$executeRawUnsafe(text),
              nested: (inner) => tx.$transaction((point) => inner(queue.within(adapt(point)))),
            }),
          { timeout: 20_000 },
        ),
      close: () => client.$disconnect(),
    };
  },
};
