import { slug } from "./slug.ts";

/** A link of a page to something that is not on another host. */
export interface PageLink {
  /** Line of the page, counted from 1. */
  readonly line: number;
  /** As it is written, such as `tasks.md#kinds`. */
  readonly target: string;
}

const linkPattern = /(?<=\])\((<[^>]*>|[^()\s]*(?:\([^()]*\)[^()\s]*)*)(?:\s+"[^"]*")?\)/g;
const elsewhere = /^[a-z][a-z0-9+.-]*:/i;

/** The links of a page to its own site: those of Markdown, not those in code. */
export function linksOf(markdown: string): PageLink[] {
  return proseLines(markdown).flatMap((text, index) =>
    [...text.matchAll(linkPattern)]
      .map((match) => (match[1] ?? "").replaceAll(/^<|>$/g, ""))
      .filter((target) => !elsewhere.test(target))
      .map((target) => ({ line: index + 1, target })),
  );
}

/** The same page with every link to its own site replaced; undefined leaves the text and takes the link away. */
export function relink(markdown: string, replace: (target: string) => string | undefined): string {
  const prose = proseLines(markdown);
  return markdown
    .split("\n")
    .map((line, index) => (prose[index]?.includes("](") ? relinkLine(line, replace) : line))
    .join("\n");
}

function relinkLine(line: string, replace: (target: string) => string | undefined): string {
  return line.replaceAll(/\[((?:[^[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)/g, (all, text, target) => {
    if (elsewhere.test(target)) return all;
    const replaced = replace(target);
    return replaced === undefined ? text : `[${text}](${replaced})`;
  });
}

/** The anchors of a page's headings. */
export function anchorsOf(markdown: string): Set<string> {
  const anchors = new Set<string>();
  for (const line of proseLines(markdown, { keepCode: true })) {
    const heading = /^#{1,6}\s+(.+?)\s*#*$/.exec(line)?.[1];
    if (heading === undefined) continue;
    const base = slug(heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1"));
    let anchor = base;
    for (let repeat = 1; anchors.has(anchor); repeat += 1) anchor = `${base}-${repeat}`;
    anchors.add(anchor);
  }
  return anchors;
}

/** The first heading of a page, without its marks. */
export function titleOf(markdown: string): string | undefined {
  const heading = proseLines(markdown, { keepCode: true }).find((line) => /^#\s/.test(line));
  return heading?.replace(/^#\s+/, "").replaceAll("`", "").trim();
}

/** The lines of a page, with blank ones for blocks of code and, unless it is kept, spaces for code in a line. */
function proseLines(markdown: string, { keepCode = false } = {}): string[] {
  let fence: string | undefined;
  return markdown.split("\n").map((line) => {
    const mark = /^\s*(`{3,}|~{3,})/.exec(line)?.[1];
    if (mark !== undefined && fence === undefined) fence = mark;
    else if (mark !== undefined && fence !== undefined && mark.startsWith(fence)) fence = undefined;
    else if (fence === undefined)
      return keepCode ? line : line.replaceAll(/(`+)(?!`).*?[^`]\1(?!`)/g, "");
    return "";
  });
}
