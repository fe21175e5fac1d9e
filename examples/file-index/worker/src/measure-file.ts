import { createHash } from "node:crypto";
import { constants, open } from "node:fs/promises";
import { fileKind, HEAD_LENGTH } from "./file-kind.ts";
import { TextCounter } from "./text-counter.ts";

export interface FileMeasures {
  readonly bytes: number;
  readonly sha256: string;
  readonly type: string;
  readonly lines: number;
  readonly words: number;
}

const chunkLength = 64 * 1024;

/** Neither through a link, nor waiting for somebody to write into what has become a pipe. */
const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** Reads a file once, in chunks; rejects with the signal's reason when it aborts. */
export async function measureFile(
  path: Buffer,
  name: string,
  signal: AbortSignal,
): Promise<FileMeasures> {
  const file = await open(path, flags);
  try {
    const stats = await file.stat();
    if (!stats.isFile()) throw notAFile(stats.isDirectory() ? "a folder" : "something else");
    const hash = createHash("sha256");
    const counter = new TextCounter();
    const buffer = Buffer.allocUnsafe(chunkLength);
    let bytes = 0;
    let type: string | undefined;
    for (let isAtEnd = false; !isAtEnd; ) {
      signal.throwIfAborted();
      const { bytesRead } = await file.read(buffer, 0, chunkLength, null);
      const chunk = buffer.subarray(0, bytesRead);
      type ??= await fileKind(chunk.subarray(0, HEAD_LENGTH), name);
      bytes += bytesRead;
      hash.update(chunk);
      counter.update(chunk);
      // A short read past the size is the end; a file that grows meanwhile is read on.
      isAtEnd = bytesRead === 0 || (bytesRead < chunkLength && bytes >= stats.size);
    }
    const { lines, words } = counter;
    return { bytes, sha256: hash.digest("hex"), type: type ?? "", lines, words };
  } finally {
    await file.close();
  }
}

function notAFile(what: string): Error {
  return Object.assign(new Error(`it has become ${what}`), { code: "NOT_A_FILE" });
}
