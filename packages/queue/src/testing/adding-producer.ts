// A process of producers that add to one counter; every fourth addition is in a transaction, and half of these roll back.
import { pooledQueueOptions } from "@venturi-tooling/testing/pooler";
import pg from "pg";
import { Queue } from "../queue.ts";
import { Add, addWithin } from "./adding.ts";

const [connectionString, producers = "1", additions = "1"] = process.argv.slice(2);
// Nobody waits for a connection between reading and deciding.
const pool = new pg.Pool({ connectionString, max: Number(producers) + 4 });
let sum = 0;

// Some share a queue and with it statements, some have a queue of their own.
const queues = Array.from({ length: 4 }, () => new Queue(pool, pooledQueueOptions()));

async function produce(producer: number): Promise<void> {
  const queue = queues[producer % queues.length] as Queue;
  for (let n = 1; n <= Number(additions); n += 1) {
    const job = Add({ key: "sum", n });
    const turn = (n + producer) % 8;
    if (turn === 0) await addWithin(pool, queue, job, "rollback");
    else if (turn === 4) await addWithin(pool, queue, job, "commit");
    else await queue.enqueue(job);
    if (turn !== 0) sum += n;
  }
}

await Promise.all(Array.from({ length: Number(producers) }, (_, index) => produce(index)));
process.stdout.write(`${sum}\n`);
await pool.end();
