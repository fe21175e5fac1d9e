import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Application, type ProjectReflection, TSConfigReader } from "typedoc";
import { namesForRuntimes, splitOverview } from "./audience.ts";
import { filesUnder, root, site, staging } from "./paths.ts";

interface Entry {
  /** What users import, such as `@venturi/queue/adapters`. */
  readonly name: string;
  /** Its source, from the root. */
  readonly source: string;
  /** What its package says of itself. */
  readonly description: string;
}

/** Writes a page for everything that the packages export. */
export async function writeReference(): Promise<void> {
  const entries = publicEntries();
  const application = await Application.bootstrapWithPlugins(
    {
      plugin: ["typedoc-plugin-markdown"],
      entryPoints: entries.map(({ source }) => join(root, source)),
      tsconfig: join(site, "tsconfig.reference.json"),
      basePath: root,
      alwaysCreateEntryPointModule: true,
      readme: "none",
      disableSources: true,
      excludePrivate: true,
      excludeInternal: true,
      excludeExternals: true,
      githubPages: false,
      sort: ["source-order"],
      validation: { notExported: false, invalidLink: true, notDocumented: false },
      logLevel: "Warn",
      // Of typedoc-plugin-markdown, whose types TypeDoc does not know.
      ...({
        outputs: [{ name: "markdown", path: join(staging, "api") }],
        outputFileStrategy: "members",
        entryFileName: "index",
        mergeReadme: false,
        hidePageHeader: true,
        hideBreadcrumbs: true,
        hideGroupHeadings: false,
        useCodeBlocks: true,
        expandParameters: true,
        sanitizeComments: true,
        useHTMLEncodedBrackets: true,
        parametersFormat: "table",
        interfacePropertiesFormat: "list",
        typeDeclarationFormat: "table",
        indexFormat: "table",
        pageTitleTemplates: { module: "{name}", member: "{name}" },
      } as object),
    },
    [new TSConfigReader()],
  );
  const project = await application.convert();
  if (!project) throw new Error("TypeDoc could not read the packages");
  nameModules(project, entries);
  application.validate(project);
  await application.generateOutputs(project);
  if (application.logger.hasErrors()) throw new Error("TypeDoc found errors; see above");
  for (const page of filesUnder(join(staging, "api"), /\.md$/)) polish(join(staging, "api", page));
  for (const { name, source } of entries) {
    const page = join(staging, "api", name, "index.md");
    const names = namesForRuntimes(readFileSync(join(root, source), "utf8"));
    writeFileSync(page, splitOverview(readFileSync(page, "utf8"), names));
  }
  writeFileSync(join(staging, "api/index.md"), overview(entries));
}

/** TypeDoc names modules after their files; users know them by what they import. */
function nameModules(project: ProjectReflection, entries: readonly Entry[]): void {
  for (const child of project.children ?? []) {
    const path = `packages/${child.name.replace(/^packages\//, "").replace(/\/index$/, "")}`;
    const entry = entries.find(({ source }) => source.replace(/(\/index)?\.ts$/, "") === path);
    if (!entry) throw new Error(`no package exports ${child.name}`);
    child.name = entry.name;
  }
}

/** What reads badly as TypeDoc writes it: defaults that are words set as code, and defaults in titles. */
function polish(file: string): void {
  const text = readFileSync(file, "utf8")
    .replaceAll(
      /#{2,6} Default Value\n\n```ts\n(.*)\n```/g,
      (_, value: string) => `Default: ${shown(value)}.`,
    )
    .replace(/^# .*$/m, (title) => title.replaceAll(/ = `[^`]*`/g, ""));
  writeFileSync(file, text);
}

function shown(value: string): string {
  return /^[\w".]+$|^new |^\{/.test(value) && !/^[a-z]+$/.test(value) ? `\`${value}\`` : value;
}

function overview(entries: readonly Entry[]): string {
  const rows = entries.map(
    ({ name, description }) => `| [${name}](${name}/index.md) | ${description} |`,
  );
  return [
    "# API reference",
    "Everything that the packages export, as their sources describe it. How the parts play together is in the [guide](/introduction).",
    ["| import from | what it is |", "| --- | --- |", ...rows].join("\n"),
  ].join("\n\n");
}

interface Manifest {
  readonly name: string;
  readonly description: string;
  readonly exports: Readonly<Record<string, { readonly "@venturi/source"?: string }>>;
}

/** What the packages' manifests export. */
function publicEntries(): Entry[] {
  return readdirSync(join(root, "packages")).flatMap((folder) => {
    const manifest = JSON.parse(
      readFileSync(join(root, "packages", folder, "package.json"), "utf8"),
    ) as Manifest;
    return Object.entries(manifest.exports).flatMap(([path, conditions]) => {
      const source = conditions["@venturi/source"];
      if (source === undefined) return [];
      const name = `${manifest.name}${path.slice(1)}`;
      return [
        {
          name,
          source: `packages/${folder}/${source.replace("./", "")}`,
          description: path === "." ? manifest.description : `A part of ${manifest.name}.`,
        },
      ];
    });
  });
}
