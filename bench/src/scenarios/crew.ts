import type { Site } from "../context.ts";
import type { BenchProcess } from "../process/bench-process.ts";
import { now } from "../process/clock.ts";
import type { WorkOptions, WorkResult } from "../process/protocol.ts";

/** The worker processes of one measurement. */
export class Crew {
  readonly #processes: readonly BenchProcess[];
  readonly #handled: number[];
  #watch: () => void = () => undefined;

  private constructor(processes: readonly BenchProcess[]) {
    this.#processes = processes;
    this.#handled = processes.map(() => 0);
    for (const [index, process] of processes.entries()) {
      process.onProgress = (handled) => {
        this.#handled[index] = handled;
        this.#watch();
      };
    }
  }

  /** Starts the processes, whose workers do not work yet. */
  static async gather(site: Site, count: number): Promise<Crew> {
    return new Crew(await Promise.all(Array.from({ length: count }, () => site.start())));
  }

  get first(): BenchProcess {
    return this.#processes[0] as BenchProcess;
  }

  get handled(): number {
    return this.#handled.reduce((sum, handled) => sum + handled, 0);
  }

  /** Called whenever more jobs are known to have been handled. */
  set onProgress(watch: () => void) {
    this.#watch = watch;
  }

  async start(options: WorkOptions): Promise<void> {
    await Promise.all(this.#processes.map((process) => process.call("startWorker", options)));
  }

  /** Resolves when so many jobs have been handled, with true, or when the time is up, with false. */
  until(handled: number, ms: number): Promise<boolean> {
    return new Promise((resolve) => {
      const startedAt = now();
      const look = () => {
        const isDone = this.handled >= handled;
        if (!isDone && now() - startedAt < ms) return;
        clearInterval(timer);
        this.#watch = () => undefined;
        resolve(isDone);
      };
      const timer = setInterval(look, 20);
      this.#watch = look;
      look();
    });
  }

  stop(): Promise<WorkResult[]> {
    return Promise.all(this.#processes.map((process) => process.call("stopWorker")));
  }
}
