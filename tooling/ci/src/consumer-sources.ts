/** Quick start code as a CommonJS TypeScript file says it: no await outside a function. */
export function asCommonJs(code: string): string {
  const imports: string[] = [];
  const rest = code.replaceAll(/^import\s[\s\S]*?;[^\S\n]*$/gm, (statement) => {
    imports.push(statement);
    return "";
  });
  return [
    ...imports,
    "async function main(): Promise<void> {",
    rest,
    "}",
    "main().catch((error: unknown) => {",
    "  console.error(error);",
    "  process.exitCode = 1;",
    "});",
    "",
  ].join("\n");
}

/** The packages that a piece of code imports, without paths inside them and without Node's own. */
export function importedPackages(code: string): string[] {
  const specifiers = [...code.matchAll(/^import\s[\s\S]*?["']([^"']+)["'];/gm)].map(
    ([, specifier]) => specifier ?? "",
  );
  const names = specifiers
    .filter((specifier) => !specifier.startsWith("node:") && !specifier.startsWith("."))
    .map((specifier) =>
      specifier
        .split("/")
        .slice(0, specifier.startsWith("@") ? 2 : 1)
        .join("/"),
    );
  return [...new Set(names)];
}
