import { defineTask, VenturiError } from "@venturi/core";
import { Queue } from "@venturi/queue";
import { MemoryStore } from "@venturi/testing";
import * as v from "valibot";
import { describe, expect, test } from "vitest";
import { Worker } from "./index.ts";
import { running } from "./testing/running.ts";
import { until } from "./testing/signals.ts";
import { wrapStore } from "./testing/wrap-store.ts";

const Task = defineTask({ kind: "t", payload: v.object({ goesOn: v.boolean() }) });

describe("where the claim of a run was taken before its lease had ended", () => {
  test.each([
    ["at once", 0],
    ["again with the next beat, if the store could not be asked", 1],
  ])("the worker looks whether others are lost as well: %s", async (_, failing) => {
    const store = new MemoryStore();
    await new Queue(store).enqueueMany([true, false].map((goesOn) => Task({ goesOn })));
    let looks = 0;
    const robbed = wrapStore(store, (plain) => ({
      settle: async ({ settlements }) => ({ verdicts: settlements.map(() => "lost" as const) }),
      findStale: async (request) => {
        const isLook = request.holders.some(({ overdueOnly }) => !overdueOnly);
        if (!isLook) return plain.findStale(request);
        looks += 1;
        if (looks <= failing) throw new VenturiError("database", "gone", { isRetryable: true });
        return { claims: [] };
      },
    }));
    let told: unknown;
    const worker = new Worker(robbed, { concurrency: 2, heartbeat: 100 }).register(
      Task,
      async ({ goesOn }, { signal }) => {
        if (!goesOn) return;
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
        told = signal.reason;
      },
    );
    await running(worker, () => until(() => told !== undefined));
    expect(told).toMatchObject({ code: "claim-lost" });
    expect(looks).toBe(failing + 1);
  });
});
