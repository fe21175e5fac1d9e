import { TaskError } from "@venturi/core";
import type { Handler } from "@venturi/worker";
import { FILE_BACKSTOP, type IndexFile, textToPath } from "@venturi-examples/file-index-tasks";
import type { App } from "./app.ts";
import { measureFile } from "./measure-file.ts";

/** Measures one file. One that has vanished is given up at once, one that cannot be read is tried again. */
export const indexFile: Handler<typeof IndexFile, App> = async (payload, ctx, { files }) => {
  const { scan, root, folder, name } = payload;
  const path = folder === "" ? name : `${folder}/${name}`;
  const result = {
    ...{ scan, path, folder, runs: ctx.runCount, reason: null },
    ...{ bytes: null, sha256: null, type: null, lines: null, words: null },
  };
  try {
    const measures = await measureFile(textToPath(`${root}/${path}`), name, ctx.signal);
    await files.save({ ...result, ...measures, state: "indexed" });
    ctx.attach(measures);
  } catch (error) {
    // A stop of the worker says nothing about the file.
    if (ctx.signal.aborted) throw error;
    const reason = whyNot(error);
    if (reason === null) throw error;
    if (reason === vanished) {
      await files.save({ ...result, state: "vanished", reason });
      throw TaskError.permanent(`${path}: ${reason}`, { cause: error });
    }
    const isLast = ctx.failureCount + 1 >= FILE_BACKSTOP;
    await files.save({ ...result, state: isLast ? "given-up" : "failing", reason });
    throw new Error(`${path}: ${reason}`, { cause: error });
  }
};

const vanished = "it has vanished";

const reasons: Readonly<Record<string, string>> = {
  ENOENT: vanished,
  ENOTDIR: vanished,
  EACCES: "it may not be read",
  EPERM: "it may not be read",
  EISDIR: "it has become a folder",
  ELOOP: "it has become a link",
};

/** What is wrong with the file; null where the error is not the file's. */
function whyNot(error: unknown): string | null {
  if (!(error instanceof Error)) return null;
  const { code, syscall } = error as NodeJS.ErrnoException;
  if (code === "NOT_A_FILE") return error.message;
  if (code === undefined || syscall === undefined || !fileCalls.has(syscall)) return null;
  return reasons[code] ?? error.message;
}

const fileCalls = new Set(["open", "read", "fstat", "close"]);
