import type { JobId } from "@venturi/core";
import { newId } from "../store-fixture.ts";

/** A claim that was made, whether it still holds or not. */
export interface Run {
  readonly jobId: JobId;
  readonly runCount: number;
  /** The worker's place. */
  readonly worker: number;
  /** When the claim ended, as its answer said. */
  readonly leaseExpiresAt: Date;
}

/** What a scenario has to remember in order to name things again. */
export class Model {
  readonly ids: JobId[] = [];
  readonly runs: Run[] = [];
  workers = 0;
  commands = 0;
  #instants = 0;

  newId(): JobId {
    const id = newId();
    this.ids.push(id);
    return id;
  }

  /**
   * Whole seconds from now, plus milliseconds that no other span of the scenario has: jobs that become due at one
   * instant may be found due in either order. The clock stands at whole seconds.
   */
  span(seconds: number): number {
    this.#instants += 1;
    return seconds * 1_000 + this.#instants;
  }

  /** One of the known ids, or of the runs. */
  id(at: number): JobId | undefined {
    return this.ids[at % this.ids.length];
  }

  /** One of the runs; mostly the latest. */
  run(at: number): Run | undefined {
    return this.runs.at(-1 - (at % this.runs.length));
  }
}
