import { abortReason } from "@venturi/core";
import type { Clock } from "./clock.ts";

/** After `shutdownTimeout`: how long stragglers may take to be released, and everything to be over, in milliseconds. */
const releaseGraceMs = 3_500;
const endGraceMs = 4_500;

/** The moment when a worker is told to stop, and how much time it has from then on. */
export class Shutdown {
  /** Why running handlers are aborted. */
  readonly reason = abortReason(
    "shutdown",
    "the worker is shutting down: stop, and the job will run again",
  );
  /** Resolves when the worker is told to stop. */
  readonly requested: Promise<void>;
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  readonly #announce: () => void;
  #requestedAt: number | null = null;
  #onRequest: () => void = () => undefined;

  constructor(clock: Clock, timeoutMs: number) {
    this.#clock = clock;
    this.#timeoutMs = timeoutMs;
    let announce: () => void = () => undefined;
    this.requested = new Promise((resolve) => {
      announce = resolve;
    });
    this.#announce = announce;
  }

  get isRequested(): boolean {
    return this.#requestedAt !== null;
  }

  /** Tells the worker to stop; the first time counts. */
  request(): void {
    if (this.#requestedAt !== null) return;
    this.#requestedAt = this.#clock.now();
    this.#announce();
    this.#onRequest();
  }

  /** What cannot wait until those who wait for `requested` have their turn: a handler may be about to be called. */
  onRequest(callback: () => void): void {
    this.#onRequest = callback;
  }

  /** Stops when `signal` aborts. Returns how to stop listening. */
  follow(signal: AbortSignal | undefined): () => void {
    if (signal === undefined) return () => undefined;
    const listener = (): void => this.request();
    if (signal.aborted) listener();
    signal.addEventListener("abort", listener, { once: true });
    return () => signal.removeEventListener("abort", listener);
  }

  /** How long handlers may still take to end. */
  drainLeftMs(): number {
    return this.#left(this.#timeoutMs);
  }

  /** How long releasing may still take. */
  releaseLeftMs(): number {
    return this.#left(this.#timeoutMs + releaseGraceMs);
  }

  /** How long everything may still take. */
  leftMs(): number {
    return this.#left(this.#timeoutMs + endGraceMs);
  }

  #left(totalMs: number): number {
    const since = this.#clock.now() - (this.#requestedAt ?? this.#clock.now());
    return Math.max(0, totalMs - since);
  }
}
