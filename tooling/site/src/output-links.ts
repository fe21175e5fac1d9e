import { existsSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { filesUnder } from "./paths.ts";

/** Every link of the finished site that leads nowhere, and whatever a page would load from another host. */
export function outputProblems(folder: string): string[] {
  const files = filesUnder(folder, /\.html$/);
  const pages = new Map(files.map((file) => [file, readFileSync(join(folder, file), "utf8")]));
  const anchors = new Map([...pages].map(([file, html]) => [file, idsOf(html)]));
  const styles = filesUnder(folder, /\.css$/).flatMap((file) =>
    foreignLoads(readFileSync(join(folder, file), "utf8"), /url\(["']?([^)"']+)/g).map(
      (url) => `${file}: loads ${url}`,
    ),
  );
  const links = [...pages].flatMap(([file, html]) => [
    ...foreignLoads(
      html,
      /<(?:script|img|link|iframe|source)\b[^>]*?\s(?:src|href)="([^"]+)"/g,
    ).map((url) => `${file}: loads ${url}`),
    ...brokenLinks(file, html, (path, anchor) => {
      if (!pages.has(path)) return existsSync(join(folder, path));
      return anchor === undefined || anchors.get(path)?.has(anchor) === true;
    }),
  ]);
  return [...new Set([...styles, ...links])];
}

type IsThere = (path: string, anchor: string | undefined) => boolean;

function brokenLinks(file: string, html: string, isThere: IsThere): string[] {
  return [...html.matchAll(/<a\b[^>]*?\shref="([^"]*)"/g)]
    .map((match) => decode(match[1] ?? ""))
    .filter((href) => href !== "" && !/^[a-z]+:/i.test(href))
    .filter((href) => {
      const [path = "", anchor] = href.split("#");
      const from = path.startsWith("/") ? path.slice(1) : posix.join(posix.dirname(file), path);
      const found = path === "" ? file : from;
      const page = found === "" || found.endsWith("/") ? `${found}index.html` : found;
      return !isThere(page, anchor === "" ? undefined : anchor);
    })
    .map((href) => `${file}: ${href} leads nowhere`);
}

function foreignLoads(text: string, pattern: RegExp): string[] {
  return [...text.matchAll(pattern)]
    .map((match) => match[1] ?? "")
    .filter((url) => /^(https?:)?\/\//i.test(url));
}

function idsOf(html: string): Set<string> {
  return new Set([...html.matchAll(/\sid="([^"]+)"/g)].map((match) => decode(match[1] ?? "")));
}

function decode(attribute: string): string {
  return decodeURIComponent(attribute.replaceAll("&amp;", "&").replaceAll("&quot;", '"'));
}
