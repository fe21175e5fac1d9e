import { silentLogger, VenturiError, type WorkerId } from "@venturi/core";
import { describe, expect, test } from "vitest";
import { openSession } from "./open-session.ts";
import { Shutdown } from "./shutdown.ts";
import { ManualClock } from "./testing/manual-clock.ts";
import { recordingLogger } from "./testing/recording-logger.ts";
import { deferred } from "./testing/signals.ts";

const registration = {
  ...{ name: "a", kinds: ["k"], pollMaxMs: 30_000 },
  ...{ workerTimeoutMs: 30_000, shortestLeaseMs: 900_000 },
};

/** Opens a session on a database that is gone, until `outage.isOver`. */
function opening(isPatient: boolean) {
  const clock = new ManualClock();
  const shutdown = new Shutdown(clock, 30_000);
  const outage = { isOver: false, tries: 0 };
  const { logger, records } = recordingLogger();
  const opened = openSession({
    store: {
      startWorker: async () => {
        outage.tries += 1;
        if (outage.isOver) return { worker: 7 };
        throw new VenturiError("database", "gone", { isRetryable: true });
      },
      stopWorker: async () => undefined,
    },
    ...{ clock, logger, registration, shutdown, isPatient },
  });
  return { clock, shutdown, outage, opened, records };
}

test("an outage is waited out, with growing waits of up to four seconds", async () => {
  const { clock, outage, opened, records } = opening(true);
  await clock.advance(50_000);
  // A wait may be shortened by a quarter.
  expect(outage.tries).toBeLessThan(22);
  outage.isOver = true;
  await clock.advance(4_000);
  expect(await opened).toBe(7);
  expect(records.map(({ message }) => message)).toEqual([
    "could not open a worker session, trying again",
    "can open a worker session again",
  ]);
  expect(clock.pending).toBe(0);
});

test("a stop ends the wait", async () => {
  const { clock, shutdown, outage, opened } = opening(true);
  await clock.settle();
  shutdown.request();
  expect(await opened).toBeNull();
  expect(outage.tries).toBe(1);
});

describe("a stop while the store is being asked to open a session", () => {
  function asking() {
    const clock = new ManualClock();
    const shutdown = new Shutdown(clock, 30_000);
    const answer = deferred<{ readonly worker: WorkerId }>();
    const asked = { signal: new AbortController().signal, stopped: [] as WorkerId[] };
    const opened = openSession({
      store: {
        startWorker: ({ signal }) => {
          asked.signal = signal ?? asked.signal;
          return answer.promise;
        },
        stopWorker: async ({ worker }) => {
          asked.stopped.push(worker);
        },
      },
      ...{ clock, logger: silentLogger, registration, shutdown, isPatient: true },
    });
    let isOver = false;
    void opened.then(() => {
      isOver = true;
    });
    return { clock, shutdown, answer, asked, opened, isOver: () => isOver };
  }

  test("gives it a second to answer, and ends the session that it opens", async () => {
    const { clock, shutdown, answer, asked, opened } = asking();
    await clock.settle();
    shutdown.request();
    await clock.advance(999);
    expect(asked.signal.aborted).toBe(false);
    answer.resolve({ worker: 7 });
    expect(await opened).toBeNull();
    expect(asked.stopped).toEqual([7]);
  });

  test("does not wait longer for it", async () => {
    const { clock, shutdown, asked, isOver } = asking();
    await clock.settle();
    shutdown.request();
    await clock.advance(999);
    expect(isOver()).toBe(false);
    await clock.advance(1);
    expect(isOver()).toBe(true);
    expect(asked.signal.aborted).toBe(true);
  });
});

test("nothing is waited out where that is not wanted", async () => {
  const { outage, opened } = opening(false);
  await expect(opened).rejects.toMatchObject({ code: "database" });
  expect(outage.tries).toBe(1);
});
