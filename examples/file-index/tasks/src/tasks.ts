import { Backoff, defineTask } from "@venturi/core";
import * as v from "valibot";

/** How many failures of a file make its job dead: its handler says so in the results on the last one. */
export const FILE_BACKSTOP = 5;

/** Paths are text made by `pathToText`: a name may be bytes that JSON cannot hold. */
const path = v.string();

/** Measures one file and keeps what it found. */
export const IndexFile = defineTask({
  kind: "index_file",
  payload: v.object({
    /** The run of the producer that listed the file. */
    scan: v.string(),
    /** The directory that was scanned, absolute. */
    root: path,
    /** The file's folder and name, from there. */
    folder: path,
    name: path,
  }),
  backoff: new Backoff({ base: "500ms", cap: "10s" }),
  backstop: FILE_BACKSTOP,
});

const Totals = v.object({
  /** The last file that is summed up already, by its hash; empty before the first. */
  after: v.string(),
  indexed: v.number(),
  bytes: v.number(),
  lines: v.number(),
  words: v.number(),
  /** Looks that found nothing new, one after the other, and how many files were done then. */
  idleLooks: v.number(),
  done: v.number(),
});

const nothing = { after: "", indexed: 0, bytes: 0, lines: 0, words: 0, idleLooks: 0, done: 0 };

/** Waits until the files of one folder are done, then sums them up. */
export const IndexFolder = defineTask({
  kind: "index_folder",
  payload: v.object({
    scan: v.string(),
    folder: path,
    /** How many files it has directly. */
    files: v.number(),
  }),
  carry: v.optional(Totals, nothing),
  // Behind all files, so that most folders find theirs done.
  priority: "low",
});
