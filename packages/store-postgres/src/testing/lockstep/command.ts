import type fc from "fast-check";
import type { Model } from "./model.ts";
import type { Pair } from "./pair.ts";

/** One step of a scenario; it prints itself when a scenario fails. */
export abstract class Command implements fc.AsyncCommand<Model, Pair> {
  readonly #name: string;
  readonly #arguments: unknown;

  constructor(name: string, args: unknown) {
    this.#name = name;
    this.#arguments = args;
  }

  check(): boolean {
    return true;
  }

  async run(model: Model, pair: Pair): Promise<void> {
    model.commands += 1;
    await this.apply(model, pair);
  }

  protected abstract apply(model: Model, pair: Pair): Promise<void>;

  toString(): string {
    return `${this.#name}(${JSON.stringify(this.#arguments)})`;
  }
}

/** A command from a name, what it is given and what it does. */
export function command<T>(
  name: string,
  apply: (args: T, model: Model, pair: Pair) => Promise<void>,
): (args: T) => Command {
  return (args) =>
    new (class extends Command {
      protected apply(model: Model, pair: Pair): Promise<void> {
        return apply(args, model, pair);
      }
    })(name, args);
}
