import { expect, it } from "vitest";
import { Turns } from "./turns.ts";

const turn = () => new Promise((resolve) => setImmediate(resolve));

function recorder(turns: Turns) {
  const log: string[] = [];
  const ends = new Map<string, () => void>();
  const take = (id: string, names: readonly string[]) =>
    turns.take(names, async () => {
      log.push(id);
      await new Promise<void>((resolve) => ends.set(id, resolve));
    });
  return { log, take, end: (id: string) => ends.get(id)?.() };
}

it("work on one name happens one at a time, first come first; on others at the same time", async () => {
  const { log, take, end } = recorder(new Turns(60_000));
  const all = [take("a1", ["a"]), take("b1", ["b"]), take("a2", ["a"]), take("a3", ["a"])];
  await turn();
  expect(log).toEqual(["a1", "b1"]);
  end("a1");
  await turn();
  expect(log).toEqual(["a1", "b1", "a2"]);
  end("a2");
  end("b1");
  await turn();
  end("a3");
  await Promise.all(all);
  expect(log).toEqual(["a1", "b1", "a2", "a3"]);
});

it("work on several names, in any order, never waits in a circle", async () => {
  const { log, take, end } = recorder(new Turns(60_000));
  const all = [
    take("1", ["a", "b"]),
    take("2", ["b", "a"]),
    take("3", ["c"]),
    take("4", ["c", "a"]),
  ];
  for (const id of ["3", "1", "2", "4"]) {
    await turn();
    end(id);
  }
  await Promise.all(all);
  expect(log).toEqual(["1", "3", "2", "4"]);
});

it("whoever has waited for too long goes ahead, and work that fails lets the next one in", async () => {
  const turns = new Turns(20);
  const stuck = recorder(turns);
  void stuck.take("stuck", ["a"]);
  await expect(turns.take(["a"], () => Promise.reject(new Error("no")))).rejects.toThrow("no");
  expect(await turns.take(["a"], async () => "done")).toBe("done");
  stuck.end("stuck");
});

it("says whether anybody has or awaits a turn, so that newcomers stand in line", async () => {
  const turns = new Turns(60_000);
  const { take, end } = recorder(turns);
  expect(turns.areTaken(["a"])).toBe(false);
  const held = [take("1", ["a", "b"]), take("2", ["b"])];
  await turn();
  expect(turns.areTaken(["c", "a"])).toBe(true);
  end("1");
  await turn();
  expect(turns.areTaken(["a"])).toBe(false);
  expect(turns.areTaken(["b"])).toBe(true);
  end("2");
  await Promise.all(held);
  expect(turns.areTaken(["a", "b"])).toBe(false);
});
