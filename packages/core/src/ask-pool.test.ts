import { expect, test } from "vitest";
import { askPool } from "./ask-pool.ts";

/** A pool that has no connection for anybody, as `pg` makes it. */
function poolWithout() {
  const pool = {
    ending: false,
    _pendingQueue: [] as { callback(error: Error): void }[],
    connect: () => new Promise<never>((_, reject) => pool._pendingQueue.push({ callback: reject })),
  };
  return pool;
}

test("whom a pool keeps waiting is turned away when it is ended", async () => {
  const pool = poolWithout();
  const waiting = [1, 2].map(() => askPool(pool, () => pool.connect()));
  pool.ending = true;
  expect(pool.ending).toBe(true);
  for (const each of waiting) await expect(each).rejects.toThrow(/after calling end on the pool/);
});

test("for whom others have asked waits on, as it does without venturi", async () => {
  const pool = poolWithout();
  let isOver = false;
  pool.connect().catch(() => {
    isOver = true;
  });
  const ours = askPool(pool, () => pool.connect());
  pool.ending = true;
  await expect(ours).rejects.toThrow();
  expect(isOver).toBe(false);
});

test("what has left the line is not turned away", async () => {
  const pool = poolWithout();
  let isOver = false;
  askPool(pool, () => pool.connect()).catch(() => {
    isOver = true;
  });
  pool._pendingQueue.shift();
  const behind = askPool(pool, () => pool.connect());
  pool.ending = true;
  await expect(behind).rejects.toThrow();
  expect(isOver).toBe(false);
});

test("what is no pool of pg is asked all the same, and so is one that is frozen", () => {
  expect(askPool({}, () => 1)).toBe(1);
  expect(askPool(Object.freeze({ ending: false, _pendingQueue: [] }), () => 1)).toBe(1);
});
