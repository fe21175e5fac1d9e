/** A file that a page prints as a whole. */
export interface PrintedFile {
  /** From the folder of the reader's project, such as `packages/jobs/package.json`. */
  readonly path: string;
  readonly text: string;
}

const pattern = /^`([\w./*-]+)`[^\n]*\n\n```(?:json|ts file)\n([\s\S]*?)^```$/gm;

/**
 * The files that a page prints: blocks of JSON, and those marked `ts file`, below a line that begins with their path.
 * A `*` in a path stands for every package that another path names.
 */
export function printedFiles(markdown: string): PrintedFile[] {
  const files = [...markdown.matchAll(pattern)].map(([, path = "", text = ""]) => ({ path, text }));
  const names = files.map(({ path }) => /^packages\/([\w-]+)\//.exec(path)?.[1]);
  const packages = [...new Set(names.filter((name) => name !== undefined))];
  return files.flatMap(({ path, text }) =>
    path.includes("*")
      ? packages.map((name) => ({ path: path.replace("*", name), text }))
      : [{ path, text }],
  );
}

/** What a page shows as the output of a command. */
export function printedOutput(markdown: string, command: string): string {
  const start = markdown.indexOf(`${command}\n\`\`\`\n\n\`\`\`\n`);
  const output = start === -1 ? undefined : markdown.slice(start).split("```\n")[2];
  if (output === undefined) throw new Error(`the page shows no output of ${command}`);
  return output;
}
