const heading = "## For stores and runtimes";

/**
 * What a module exports below a line of `══` in its index: the names that applications do not need. None where there
 * is no such line.
 */
export function namesForRuntimes(source: string): Set<string> {
  const below = source.split(/^\/\/ ══.*$/m)[1] ?? "";
  const lists = [...below.matchAll(/export (?:type )?\{([^}]*)\}/g)].map((match) => match[1] ?? "");
  const names = lists.flatMap((list) => list.split(",")).map((name) => name.trim());
  return new Set(names.map((name) => name.replace(/^type /, "")).filter((name) => name !== ""));
}

/** The overview of a module with those names in a part of its own, after the rest. */
export function splitOverview(markdown: string, names: ReadonlySet<string>): string {
  if (names.size === 0) return markdown;
  const [title = "", ...sections] = markdown.split(/^(?=## )/m);
  const part = (isTheirs: boolean) =>
    sections.flatMap((section) => rowsOf(section, names, isTheirs));
  const theirs = part(true).map((section) => `#${section}`);
  const note = "Queues, workers and stores use these; applications need none of them.";
  return [title, ...part(false), `${heading}\n\n${note}\n\n`, ...theirs].join("");
}

/** The names that an overview has in that part. */
export function runtimeNamesOf(overview: string): Set<string> {
  const [, below = ""] = overview.split(`${heading}\n`);
  return new Set(below.split("\n").flatMap((line) => nameOfRow(line) ?? []));
}

/** A section with the rows of one part; nothing where none is left. */
function rowsOf(section: string, names: ReadonlySet<string>, isTheirs: boolean): string[] {
  const lines = section.split("\n").filter((line) => {
    const name = nameOfRow(line);
    return name === undefined || names.has(name) === isTheirs;
  });
  return lines.some((line) => nameOfRow(line) !== undefined) ? [lines.join("\n")] : [];
}

function nameOfRow(line: string): string | undefined {
  // Markdown's underscores are escaped.
  return /^\| \[([^\]]+)\]\(/.exec(line)?.[1]?.replaceAll("\\", "");
}
