import type { RunningWorker, System } from "../systems/system.ts";
import { now } from "./clock.ts";
import type { Span, WorkOptions, WorkResult } from "./protocol.ts";
import { Recorder } from "./recorder.ts";

const progressMs = 5;

/** One worker of a system, with a record of what it handled. */
export class Labour {
  readonly #recorder = new Recorder();
  readonly #worker: RunningWorker;
  readonly #startedAt: number;
  readonly #cpu: NodeJS.CpuUsage;
  readonly #progress: NodeJS.Timeout;

  private constructor(
    worker: RunningWorker,
    recorder: Recorder,
    startedAt: number,
    cpu: NodeJS.CpuUsage,
    tell: (handled: number) => void,
  ) {
    this.#worker = worker;
    this.#recorder = recorder;
    this.#startedAt = startedAt;
    this.#cpu = cpu;
    let told = 0;
    this.#progress = setInterval(() => {
      if (recorder.count === told) return;
      told = recorder.count;
      tell(told);
    }, progressMs);
  }

  static async start(
    system: System,
    url: string,
    options: WorkOptions,
    tell: (handled: number) => void,
  ): Promise<{ labour: Labour; span: Span }> {
    const recorder = new Recorder();
    const { timerMs, variant, concurrency, kinds = 1 } = options;
    const handle =
      timerMs === null
        ? (id: number) => recorder.add(id)
        : async (id: number) => {
            await new Promise((resolve) => setTimeout(resolve, timerMs));
            recorder.add(id);
          };
    const startedAt = now();
    const cpu = process.cpuUsage();
    const worker = await system.work({ url, variant, concurrency, kinds, handle });
    const labour = new Labour(worker, recorder, startedAt, cpu, tell);
    return { labour, span: { startedAt, endedAt: now() } };
  }

  async stop(): Promise<WorkResult> {
    const stopAskedAt = now();
    await this.#worker.stop();
    const stoppedAt = now();
    const { user, system } = process.cpuUsage(this.#cpu);
    clearInterval(this.#progress);
    await this.#worker.close();
    const cpuMicros = user + system;
    return {
      startedAt: this.#startedAt,
      stopAskedAt,
      stoppedAt,
      cpuMicros,
      ...this.#recorder.taken(),
    };
  }
}
