import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import {
  type Payload,
  type Producer,
  payload,
  type System,
  type Variant,
} from "../systems/system.ts";
import { now } from "./clock.ts";
import type {
  Batch,
  EnqueueRequest,
  EnqueueTimes,
  FeedRequest,
  RateRequest,
  Span,
} from "./protocol.ts";

const batchSize = 1_000;

function payloads({ first, jobs, bytes }: Batch): Payload[] {
  return Array.from({ length: jobs }, (_, index) => payload(first + index, bytes));
}

/** Enqueues in all the ways that scenarios ask for. */
export class Production {
  readonly #system: System;
  readonly #url: string;
  readonly #producer: Producer;
  #consumed = 0;
  #isFeeding = false;
  #feeding: Promise<number> = Promise.resolve(0);

  private constructor(system: System, url: string, producer: Producer) {
    this.#system = system;
    this.#url = url;
    this.#producer = producer;
  }

  static async open(system: System, url: string, variant: Variant): Promise<Production> {
    return new Production(system, url, await system.produce(url, variant));
  }

  close(): Promise<void> {
    return this.#producer.close();
  }

  async fill({ first, jobs, bytes }: Batch): Promise<Span> {
    const startedAt = now();
    for (let done = 0; done < jobs; done += batchSize) {
      const size = Math.min(batchSize, jobs - done);
      await this.#producer.addMany(payloads({ first: first + done, jobs: size, bytes }));
    }
    return { startedAt, endedAt: now() };
  }

  feed(request: FeedRequest): void {
    this.#consumed = 0;
    this.#isFeeding = true;
    this.#feeding = this.#keepDepth(request);
  }

  consumed(handled: number): void {
    this.#consumed = handled;
  }

  endFeed(): Promise<number> {
    this.#isFeeding = false;
    return this.#feeding;
  }

  async #keepDepth({ first, bytes, waiting, depth }: FeedRequest): Promise<number> {
    let added = 0;
    while (this.#isFeeding) {
      const missing = Math.min(batchSize, depth - (waiting + added - this.#consumed));
      // Small batches would make the producer, not the worker, the one that is measured.
      if (missing < Math.min(batchSize, Math.ceil(depth / 8))) {
        await sleep(1);
        continue;
      }
      await this.#producer.addMany(payloads({ first: first + added, jobs: missing, bytes }));
      added += missing;
    }
    return added;
  }

  async produceAtRate(request: RateRequest): Promise<EnqueueTimes> {
    const { first, jobs, bytes, perSecond, perCall } = request;
    const calledAt = new Float64Array(jobs);
    const returnedAt = new Float64Array(jobs);
    const startedAt = now();
    const pending: Promise<unknown>[] = [];
    for (let index = 0; index < jobs; index += perCall) {
      const due = startedAt + (index / perSecond) * 1_000;
      while (now() < due) await sleep(Math.max(0, Math.floor(due - now())));
      const size = Math.min(perCall, jobs - index);
      calledAt.fill(now(), index, index + size);
      const batch = payloads({ first: first + index, jobs: size, bytes });
      const [only] = batch;
      const call =
        size === 1 && only !== undefined ? this.#producer.add(only) : this.#producer.addMany(batch);
      pending.push(call.then(() => returnedAt.fill(now(), index, index + size)));
    }
    await Promise.all(pending);
    return { calledAt, returnedAt };
  }

  async enqueue(request: EnqueueRequest): Promise<Span> {
    const { mode, first, jobs, bytes, callers, apart } = request;
    if (mode === "many") return this.fill(request);
    if (mode === "transaction") return this.#inTransactions(request);
    const own = apart ? ((await this.#system.produceApart?.(this.#url, callers)) ?? []) : [];
    const startedAt = now();
    let next = 0;
    const caller = async (_: unknown, index: number) => {
      const producer = own[index] ?? this.#producer;
      while (next < jobs) {
        next += 1;
        await producer.add(payload(first + next - 1, bytes));
      }
    };
    await Promise.all(Array.from({ length: mode === "one" ? 1 : callers }, caller));
    const endedAt = now();
    await Promise.all(own.map((producer) => producer.close()));
    return { startedAt, endedAt };
  }

  async #inTransactions({ first, jobs, bytes, callers }: EnqueueRequest): Promise<Span> {
    const { addWithin } = this.#producer;
    if (addWithin === undefined) throw new Error("this system cannot enqueue in a transaction");
    const clients = Array.from({ length: callers }, () => new pg.Client(this.#url));
    await Promise.all(clients.map((client) => client.connect()));
    const startedAt = now();
    let next = 0;
    const caller = async (client: pg.Client) => {
      while (next < jobs) {
        next += 1;
        const id = first + next - 1;
        await client.query("begin");
        await addWithin(client, payload(id, bytes));
        await client.query("commit");
      }
    };
    await Promise.all(clients.map(caller));
    const endedAt = now();
    await Promise.all(clients.map((client) => client.end()));
    return { startedAt, endedAt };
  }
}
