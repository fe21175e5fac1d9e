import { fileTypeFromBuffer } from "file-type";
import { Mime } from "mime";
import otherTypes from "mime/types/other.js";
import standardTypes from "mime/types/standard.js";

/** What is seen of a file to tell its type: enough for every signature. */
export const HEAD_LENGTH = 4100;

/** In a tree of sources ".ts" is no video. */
const sources = { "text/typescript": ["ts", "mts", "cts", "tsx"] };
const extensions = new Mime(standardTypes, otherTypes).define(sources, true);

/** The media type of a file: by its first bytes where they have a signature, else by its name. */
export async function fileKind(head: Uint8Array, name: string): Promise<string> {
  const signature = await bySignature(head);
  if (signature !== undefined) return signature;
  const byName = extensions.getType(name);
  if (byName !== null) return byName;
  return head.includes(0) ? "application/octet-stream" : "text/plain";
}

async function bySignature(head: Uint8Array): Promise<string | undefined> {
  if (head.length === 0) return undefined;
  try {
    return (await fileTypeFromBuffer(head))?.mime;
  } catch {
    // A file that begins like a format without being one has no signature.
    return undefined;
  }
}
