import { now } from "./clock.ts";

/** Which jobs were handled, and when. */
export class Recorder {
  #ids = new Int32Array(65_536);
  #times = new Float64Array(65_536);
  #count = 0;

  get count(): number {
    return this.#count;
  }

  add(id: number): void {
    if (this.#count === this.#ids.length) this.#grow();
    this.#ids[this.#count] = id;
    this.#times[this.#count] = now();
    this.#count += 1;
  }

  taken(): { ids: Int32Array; times: Float64Array } {
    return { ids: this.#ids.slice(0, this.#count), times: this.#times.slice(0, this.#count) };
  }

  #grow(): void {
    const [ids, times] = [this.#ids, this.#times];
    this.#ids = new Int32Array(2 * ids.length);
    this.#times = new Float64Array(2 * times.length);
    this.#ids.set(ids);
    this.#times.set(times);
  }
}
