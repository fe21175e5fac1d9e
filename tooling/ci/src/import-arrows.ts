import ts from "typescript";

/** A package as the check sees it: its manifest and the text of every file under `src`. */
export interface CheckedPackage {
  readonly name: string;
  readonly manifest: Manifest;
  /** By path relative to the package, such as `src/queue.ts`. */
  readonly sources: ReadonlyMap<string, string>;
}

export interface Manifest {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
}

interface Arrows {
  /** Packages whose code may be loaded, besides the platform's. */
  readonly runTime: readonly string[];
  /** Packages whose types may be named. */
  readonly types: readonly string[];
  /** Whether `node:` modules may be loaded. */
  readonly node: boolean;
}

/** Who may import whom. A package that is not listed here may not exist. */
const ARROWS: Readonly<Record<string, Arrows>> = {
  "@venturi/core": { runTime: ["ulid"], types: ["@standard-schema/spec"], node: false },
  "@venturi/queue": { runTime: ["@venturi/core"], types: [], node: true },
  "@venturi/store-postgres": {
    runTime: ["@venturi/core", "pg", "kysely"],
    types: [],
    node: true,
  },
  "@venturi/otel": { runTime: ["@venturi/core", "@opentelemetry/api"], types: [], node: true },
  "@venturi/testing": { runTime: ["@venturi/core"], types: [], node: true },
  "@venturi/worker": { runTime: ["@venturi/core"], types: [], node: true },
};

/** Every way in which a package breaks the arrows, as `file: what is wrong`. */
export function arrowViolations(checked: CheckedPackage): string[] {
  const arrows = ARROWS[checked.name];
  if (!arrows) return [`package.json: ${checked.name} has no arrows in import-arrows.ts`];
  const inSources = [...checked.sources].flatMap(([file, text]) =>
    importsOf(file, text)
      .map((found) => violation(checked, arrows, file, found))
      .filter((problem) => problem !== undefined)
      .map((problem) => `${file}: ${problem}`),
  );
  return [...manifestViolations(checked, arrows), ...inSources];
}

function manifestViolations({ manifest }: CheckedPackage, arrows: Arrows): string[] {
  const allowed = [...arrows.runTime, ...arrows.types];
  return Object.keys({
    ...manifest.dependencies,
    ...manifest.optionalDependencies,
    ...manifest.peerDependencies,
  })
    .filter((name) => !allowed.includes(name))
    .map((name) => `package.json: must not depend on ${name}`);
}

/** Tests, and what only tests use. */
const testFile = /\.test(-d)?\.ts$|\/testing\//;

interface FoundImport {
  readonly specifier: string;
  readonly typeOnly: boolean;
}

function violation(
  checked: CheckedPackage,
  arrows: Arrows,
  file: string,
  { specifier, typeOnly }: FoundImport,
): string | undefined {
  const isTest = testFile.test(file);
  if (specifier.startsWith(".")) {
    if (escapes(file, specifier)) return `${specifier} leaves the package's src`;
    const reachesTest = !isTest && testFile.test(specifier);
    return reachesTest ? `${specifier} is a test` : undefined;
  }
  if (isTest) return undefined; // tests use whatever the manifest lists under devDependencies
  if (specifier.startsWith("node:")) {
    return arrows.node ? undefined : `${specifier} is of the platform`;
  }
  const name = packageOf(specifier);
  const allowed = typeOnly ? [...arrows.runTime, ...arrows.types] : arrows.runTime;
  if (!allowed.includes(name)) {
    return `${specifier} is not for ${checked.name}${typeOnly ? "" : " at run time"}`;
  }
  const { dependencies, peerDependencies } = checked.manifest;
  if (!dependencies?.[name] && !peerDependencies?.[name]) return `${name} is no dependency`;
  return undefined;
}

/** Whether a relative path climbs out of the package's `src`. */
function escapes(file: string, specifier: string): boolean {
  let depth = file.split("/").length - 1;
  for (const step of specifier.split("/")) {
    if (step === "..") depth -= 1;
    else if (step !== ".") depth += 1;
    if (depth < 1) return true;
  }
  return false;
}

function packageOf(specifier: string): string {
  const parts = specifier.split("/");
  return specifier.startsWith("@") ? parts.slice(0, 2).join("/") : (parts[0] ?? specifier);
}

/** Static, dynamic and type imports of a source, and what it re-exports. */
export function importsOf(file: string, text: string): FoundImport[] {
  const found: FoundImport[] = [];
  const add = (specifier: ts.Node | undefined, typeOnly: boolean) => {
    if (specifier && ts.isStringLiteralLike(specifier)) {
      found.push({ specifier: specifier.text, typeOnly });
    }
  };
  const visit = (node: ts.Node): void => {
    if (ts.isImportDeclaration(node)) {
      add(node.moduleSpecifier, node.importClause?.phaseModifier === ts.SyntaxKind.TypeKeyword);
    } else if (ts.isExportDeclaration(node)) {
      add(node.moduleSpecifier, node.isTypeOnly);
    } else if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) {
      add(node.argument.literal, true);
    } else if (ts.isCallExpression(node) && isImportCall(node.expression)) {
      add(node.arguments[0], false);
    }
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile(file, text, ts.ScriptTarget.ES2022, true));
  return found;
}

function isImportCall(callee: ts.Node): boolean {
  return (
    callee.kind === ts.SyntaxKind.ImportKeyword ||
    (ts.isIdentifier(callee) && callee.text === "require")
  );
}
