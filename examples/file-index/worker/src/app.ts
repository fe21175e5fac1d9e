import type { FileResults } from "./file-results.ts";
import type { FolderResults } from "./folder-results.ts";

/** What the handlers work with. */
export interface App {
  readonly files: FileResults;
  readonly folders: FolderResults;
}
