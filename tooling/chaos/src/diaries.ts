import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** What all processes of a scenario wrote down. */
export interface Diaries {
  /** Ids whose enqueue was tried, with their kinds. */
  readonly tried: ReadonlyMap<string, string>;
  readonly accepted: ReadonlySet<string>;
  /** `id run` of every call of a handler; how often it was called for this run. */
  readonly started: ReadonlyMap<string, number>;
  /** `id run` of every handler that came to its end, and how. */
  readonly ended: ReadonlyMap<string, string>;
}

/** Reads every diary in a folder; a line that a SIGKILL cut short does not exist, since lines are written at once. */
export function readDiaries(folder: string): Diaries {
  const tried = new Map<string, string>();
  const accepted = new Set<string>();
  const started = new Map<string, number>();
  const ended = new Map<string, string>();
  for (const file of readdirSync(folder)) {
    for (const line of readFileSync(join(folder, file), "latin1").split("\n")) {
      const [what, id = "", second = "", third = ""] = line.split(" ");
      if (what === "t") tried.set(id, second);
      else if (what === "a") accepted.add(id);
      else if (what === "s")
        started.set(`${id} ${second}`, (started.get(`${id} ${second}`) ?? 0) + 1);
      else if (what === "e") ended.set(`${id} ${second}`, third);
    }
  }
  return { tried, accepted, started, ended };
}
