import type { FileResults } from "./file-results.ts";
import type { FolderResults } from "./folder-results.ts";

/** What the handlers work with, wherever the results are kept. */
export interface App {
  readonly files: Pick<FileResults, "save">;
  readonly folders: Pick<FolderResults, "countFinal" | "sumPage" | "save">;
}
