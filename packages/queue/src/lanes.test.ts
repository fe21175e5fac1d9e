import { type EnqueueJob, PORT_VERSION } from "@venturi/core";
import { expect, it } from "vitest";
import { nextJobId } from "./job-ids.ts";
import { Queue } from "./queue.ts";
import { Count, Replaced, SendEmail } from "./testing/tasks.ts";

/** A queue over a store whose answers the test gives. */
function held() {
  const sent: { readonly jobs: string; readonly answer: () => void }[] = [];
  const store = {
    portVersion: PORT_VERSION,
    capabilities: { transactions: false, notifications: false },
    enqueue: ({ jobs }: { readonly jobs: readonly EnqueueJob[] }) =>
      new Promise((resolve) => {
        const stored = jobs.map(({ id }) => ({ id, outcome: "enqueued" as const }));
        const said = jobs.map(({ kind, payload }) => `${kind} ${JSON.parse(payload).n ?? ""}`);
        sent.push({ jobs: said.join(", "), answer: () => resolve({ jobs: stored }) });
      }),
  };
  return { queue: new Queue(store as never), sent };
}

/** Lets everything that is ready run. */
const turn = () => new Promise((resolve) => setImmediate(resolve));

const texts = (sent: readonly { readonly jobs: string }[]) => sent.map(({ jobs }) => jobs);

const email = () => SendEmail({ to: "a@example.com" });

it("the first call of each kind goes by itself, and what has piled up behind it goes with the others, in order", async () => {
  const { queue, sent } = held();
  const calls = [queue.enqueue(Count({ n: 1 })), queue.enqueue(email())];
  await turn();
  calls.push(...[2, 3].map((n) => queue.enqueue(Count({ n }))));
  await turn();
  expect(texts(sent)).toEqual(["count 1", "send_email "]);
  sent[0]?.answer();
  sent[1]?.answer();
  await calls[0];
  calls.push(queue.enqueue(Count({ n: 4 })), queue.enqueue(email()));
  await turn();
  sent[2]?.answer();
  await turn();
  sent[3]?.answer();
  expect(texts(sent).slice(2)).toEqual(["count 2, count 3", "count 4, send_email "]);
  await Promise.all(calls);
});

it("keys, and ids of the caller's own, hold up nobody else once their kinds are stored", async () => {
  const { queue, sent } = held();
  const first = queue.enqueueMany([Count({ n: 0 }), Replaced({ key: "a", n: 0 })]);
  await turn();
  sent[0]?.answer();
  await first;
  const calls = [
    queue.enqueue(Replaced({ key: "a", n: 1 })),
    queue.enqueue(Count({ n: 2 }), { id: nextJobId() }),
    queue.enqueue(Count({ n: 3 })),
  ];
  await turn();
  expect(texts(sent).slice(1).sort()).toEqual(["count 3", "replaced 1, count 2"]);
  for (const { answer } of sent) answer();
  await Promise.all(calls);
});

it("a kind is new until a call has been answered, whether or not somebody still waits for it", async () => {
  const { queue, sent } = held();
  const lost = queue.enqueue(Count({ n: 1 }), { signal: AbortSignal.timeout(1) });
  await expect(lost).rejects.toMatchObject({ name: "TimeoutError" });
  const others = [queue.enqueue(email()), queue.enqueue(Count({ n: 2 }))];
  await turn();
  expect(texts(sent)).toEqual(["count 1", "send_email "]);
  for (const { answer } of sent) answer();
  await turn();
  for (const { answer } of sent) answer();
  await Promise.all(others);
});
