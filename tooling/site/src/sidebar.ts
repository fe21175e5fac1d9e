import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { DefaultTheme } from "vitepress";
import { runtimeNamesOf } from "./audience.ts";
import { titleOf } from "./markdown.ts";
import { filesUnder, staging } from "./paths.ts";

type Item = DefaultTheme.SidebarItem;

/** In the order in which they are read; pages that are not named come after these, by their names. */
const order: Readonly<Record<string, readonly string[]>> = {
  learning: [
    "tasks",
    "enqueueing",
    "without-typescript",
    "deduplication",
    "delayed-jobs",
    "priorities",
    "workers",
    "concurrency",
    "outcomes",
    "carry",
    "retries",
    "completing",
    "recovery",
    "shutdown",
    "journal",
    "wakeups",
    "errors",
    "deploying",
    "testing",
    "configuration",
  ],
  recipes: [
    "transactional-enqueue",
    "outbox",
    "webhooks",
    "polling-an-api",
    "fan-out",
    "schedules",
    "large-payloads",
    "containers",
    "testing-handlers",
  ],
  operations: [
    "operating",
    "sizing",
    "alerts",
    "observability",
    "tables",
    "autovacuum",
    "upgrading",
    "roles",
    "failure-modes",
    "chaos",
    "writing-a-store",
    "schema",
  ],
  migrating: ["from-graphile-worker", "from-pg-boss", "from-bullmq"],
  packages: ["core", "queue", "worker", "store-postgres", "testing", "otel"],
};

/** The pages beside every page, by the section that they are in. */
export function sidebars(): DefaultTheme.SidebarMulti {
  const guide: Item[] = [
    { text: "Introduction", link: "/introduction" },
    { text: "Getting started", link: "/getting-started" },
    { text: "Limits", link: "/limits" },
    { text: "Learning", items: pagesOf("learning"), collapsed: false },
    { text: "Recipes", items: pagesOf("recipes"), collapsed: false },
    { text: "Operations", items: pagesOf("operations"), collapsed: false },
    ...indexOf("performance", "Performance"),
    { text: "Moving to venturi", items: pagesOf("migrating"), collapsed: false },
    { text: "Packages", items: pagesOf("packages"), collapsed: false },
    { text: "Examples", items: pagesOf("examples"), collapsed: true },
  ].filter((item) => !("items" in item) || (item.items?.length ?? 0) > 0);
  return {
    "/": guide,
    ...referenceSidebars(),
    "/decisions/": [{ text: "Decision records", link: "/decisions/", items: pagesOf("decisions") }],
  };
}

/** A section whose first page is its index, where there is one. */
function indexOf(section: string, text: string): Item[] {
  if (!existsSync(join(staging, section, "index.md"))) return [];
  const items = pagesOf(section);
  return [{ text, link: `/${section}/`, ...(items.length > 0 ? { items } : {}) }];
}

function pagesOf(section: string): Item[] {
  const folder = join(staging, section);
  if (!existsSync(folder)) return [];
  const first = order[section] ?? [];
  const rank = (name: string) => {
    const place = first.indexOf(name);
    return place === -1 ? first.length : place;
  };
  return filesUnder(folder, /\.md$/)
    .map((file) => file.replace(/\.md$/, ""))
    .filter((name) => name !== "index")
    .sort((a, b) => rank(a) - rank(b) || a.localeCompare(b))
    .map((name) => ({ text: title(join(folder, `${name}.md`)), link: `/${section}/${name}` }));
}

/** For each module its members by sort of thing, after links to all modules. */
function referenceSidebars(): DefaultTheme.SidebarMulti {
  const folder = join(staging, "api");
  const modules = filesUnder(folder, /^index\.md$/)
    .map((file) => file.replace(/\/?index\.md$/, ""))
    .filter((name) => name !== "")
    .sort();
  const links = modules.map((name) => ({ text: name, link: `/api/${name}/` }));
  const every: Item = { text: "API reference", link: "/api/", items: links };
  return Object.fromEntries([
    ["/api/", [every]],
    ...modules.map(
      (name) => [`/api/${name}/`, [every, ...membersOf(name, folder)]] satisfies [string, Item[]],
    ),
  ]);
}

/** What applications use by sort of thing, then what only stores and runtimes use. */
function membersOf(name: string, folder: string): Item[] {
  const theirs = runtimeNamesOf(readFileSync(join(folder, name, "index.md"), "utf8"));
  const part = (isTheirs: boolean): Item[] =>
    sorts
      .filter(([sort]) => existsSync(join(folder, name, sort)))
      .map(([sort, text]) => ({
        text,
        collapsed: isTheirs,
        items: readdirSync(join(folder, name, sort))
          .sort()
          .map((file) => file.replace(/\.md$/, ""))
          .filter((member) => theirs.has(member) === isTheirs)
          .map((member) => ({ text: member, link: `/api/${name}/${sort}/${member}` })),
      }))
      .filter(({ items }) => items.length > 0);
  const others = part(true);
  const last = { text: "For stores and runtimes", collapsed: true, items: others };
  return [...part(false), ...(others.length > 0 ? [last] : [])];
}

const sorts = [
  ["classes", "Classes"],
  ["functions", "Functions"],
  ["variables", "Values"],
  ["interfaces", "Interfaces"],
  ["type-aliases", "Types"],
] as const;

function title(file: string): string {
  return titleOf(readFileSync(file, "utf8")) ?? file;
}
