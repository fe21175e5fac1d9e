export { pathToText, textToPath } from "./path-text.ts";
export { FILE_BACKSTOP, IndexFile, IndexFolder } from "./tasks.ts";
