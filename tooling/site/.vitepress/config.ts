import { defineConfig, type MarkdownRenderer } from "vitepress";
import { sidebars } from "../src/sidebar.ts";
import { slug } from "../src/slug.ts";

export default defineConfig({
  title: "venturi",
  description: "A durable job queue in PostgreSQL, for TypeScript.",
  lang: "en",
  srcDir: ".pages",
  outDir: "dist",
  cacheDir: ".cache",
  cleanUrls: false,
  lastUpdated: false,
  head: [["link", { rel: "icon", type: "image/svg+xml", href: "/mark.svg" }]],
  markdown: {
    anchor: { slugify: slug },
    headers: { slugify: slug },
    toc: { slugify: slug },
    theme: { light: "github-light", dark: "github-dark" },
    config: (markdown) => markdown.use(shortCode),
  },
  // The index of the search is one file.
  vite: { build: { chunkSizeWarningLimit: 2_000 } },
  themeConfig: {
    logo: "/mark.svg",
    nav: [
      {
        text: "Guide",
        link: "/introduction",
        activeMatch: "^/(introduction|getting-started|limits|learning|packages|examples)/?",
      },
      { text: "Recipes", link: "/recipes/transactional-enqueue", activeMatch: "^/recipes/" },
      { text: "Operations", link: "/operations/operating", activeMatch: "^/operations/" },
      { text: "Performance", link: "/performance/", activeMatch: "^/performance/" },
      { text: "Moving here", link: "/migrating/from-pg-boss", activeMatch: "^/migrating/" },
      { text: "API", link: "/api/", activeMatch: "^/api/" },
      { text: "Decisions", link: "/decisions/", activeMatch: "^/decisions/" },
    ],
    sidebar: sidebars(),
    outline: { level: [2, 3], label: "On this page" },
    search: { provider: "local", options: { miniSearch: { searchOptions: { boostDocument } } } },
    docFooter: { prev: "Before", next: "Next" },
  },
});

const shortCodeLength = 24;

/** Marks code that should stay on one line. */
function shortCode(markdown: MarkdownRenderer): void {
  const render = markdown.renderer.rules.code_inline;
  markdown.renderer.rules.code_inline = (tokens, index, ...rest) => {
    const token = tokens[index];
    if (token && token.content.length <= shortCodeLength) token.attrJoin("class", "short");
    return render?.(tokens, index, ...rest) ?? "";
  };
}

/** Who searches for a word wants the page that explains it before the one that lists it. */
function boostDocument(documentId: string): number {
  return documentId.startsWith("/api/") || documentId.startsWith("/decisions/") ? 0.3 : 1;
}
