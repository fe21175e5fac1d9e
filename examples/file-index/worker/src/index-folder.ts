import { Outcome, TaskError } from "@venturi/core";
import type { Handler } from "@venturi/worker";
import type { IndexFolder } from "@venturi-examples/file-index-tasks";
import type { App } from "./app.ts";

/** Files that one run sums up before it writes down how far it has come. */
const pageSize = 5_000;

const firstWaitMs = 100;
const maxWaitMs = 15_000;
/** About an hour without any news. */
const maxIdleLooks = 240;

/** Waits for the folder's files, then sums them up, page by page; what is summed up is in the carry. */
export const indexFolder: Handler<typeof IndexFolder, App> = async (payload, ctx, { folders }) => {
  const { scan, folder, files } = payload;
  const { carry } = ctx;
  const done = await folders.countFinal(scan, folder);
  if (done < files) {
    carry.idleLooks = done > carry.done ? 1 : carry.idleLooks + 1;
    carry.done = done;
    const missing = `${files - done} of ${files} files are not done`;
    if (carry.idleLooks > maxIdleLooks) throw TaskError.permanent(`nothing happens: ${missing}`);
    return Outcome.pauseFor(Math.min(firstWaitMs * 2 ** carry.idleLooks, maxWaitMs), missing);
  }
  const page = await folders.sumPage(scan, folder, carry.after, pageSize);
  carry.after = page.after;
  carry.indexed += page.indexed;
  carry.bytes += page.bytes;
  carry.lines += page.lines;
  carry.words += page.words;
  if (page.rows === pageSize) return Outcome.pauseFor(0, `summed up to ${page.after}`);
  await folders.save(scan, folder, files, carry);
  return Outcome.completed(`${carry.indexed} of ${files} files indexed`);
};
