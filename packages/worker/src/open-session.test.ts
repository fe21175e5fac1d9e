import { VenturiError } from "@venturi/core";
import { expect, test } from "vitest";
import { openSession } from "./open-session.ts";
import { Shutdown } from "./shutdown.ts";
import { ManualClock } from "./testing/manual-clock.ts";
import { recordingLogger } from "./testing/recording-logger.ts";

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

test("nothing is waited out where that is not wanted", async () => {
  const { outage, opened } = opening(false);
  await expect(opened).rejects.toMatchObject({ code: "database" });
  expect(outage.tries).toBe(1);
});
