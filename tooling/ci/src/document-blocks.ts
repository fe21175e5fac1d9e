/** A TypeScript block of a Markdown file. */
export interface DocumentBlock {
  /** Path of the Markdown file from the root. */
  readonly file: string;
  /** Line of the file on which the code starts, counted from 1. */
  readonly line: number;
  /** The code at the lines where it stands in the file, so that compilers name the right ones. */
  readonly code: string;
  /** Whether it is marked to be run. */
  readonly runs: boolean;
}

/**
 * Finds the `ts` blocks of a Markdown file. Each is a module of its own; ` ```ts continue ` goes on
 * with the module before it; ` ```ts run ` is also executed. ` ```ts file ` is left out: it is a file of a project
 * that the page prints as a whole.
 */
export function documentBlocks(file: string, markdown: string): DocumentBlock[] {
  const blocks: DocumentBlock[] = [];
  let open: { fence: string; marks: string[]; lines: string[]; start: number } | undefined;
  const lines = markdown.split("\n");
  for (const [index, line] of lines.entries()) {
    const fence = /^\s*(`{3,}|~{3,})\s*(.*)$/.exec(line);
    if (!open && fence) {
      const marks = (fence[2] ?? "").trim().split(/\s+/);
      open = { fence: fence[1] ?? "", marks, lines: [], start: index + 2 };
    } else if (open && fence && fence[2] === "" && fence[1]?.startsWith(open.fence)) {
      addBlock(blocks, file, open.marks, open.lines, open.start);
      open = undefined;
    } else {
      open?.lines.push(line);
    }
  }
  return blocks;
}

function addBlock(
  blocks: DocumentBlock[],
  file: string,
  [language, ...marks]: readonly string[],
  lines: readonly string[],
  line: number,
): void {
  if (language !== "ts" && language !== "typescript") return;
  if (marks.join() === "file") return;
  const unknown = marks.find((mark) => mark !== "run" && mark !== "continue");
  if (unknown) throw new Error(`${file}:${line - 1}: unknown mark "${unknown}" after \`\`\`ts`);
  const runs = marks.includes("run");
  const previous = marks.includes("continue") ? blocks.pop() : undefined;
  if (marks.includes("continue") && !previous) {
    throw new Error(`${file}:${line - 1}: nothing to continue`);
  }
  const before = previous?.code ?? "";
  const code = before + "\n".repeat(line - 1 - before.split("\n").length + 1) + lines.join("\n");
  blocks.push({ file, line: previous?.line ?? line, code, runs: runs || previous?.runs === true });
}
