import ts from "typescript";

/** One option as its docstring tells of it. */
export interface OptionRow {
  readonly name: string;
  /** The docstring's default; null where it names none. */
  readonly defaultValue: string | null;
  readonly isRequired: boolean;
  readonly meaning: string;
}

/** The options that an interface or type alias of a source file declares, in its order. Throws where it has none, or one without a docstring. */
export function readOptions(fileName: string, source: string, typeName: string): OptionRow[] {
  const file = ts.createSourceFile(fileName, source, ts.ScriptTarget.Latest, true);
  const declaration = file.statements.find(
    (statement): statement is ts.InterfaceDeclaration =>
      ts.isInterfaceDeclaration(statement) && statement.name.text === typeName,
  );
  if (declaration === undefined) throw new Error(`${fileName} declares no interface ${typeName}`);
  return declaration.members.filter(ts.isPropertySignature).map((member) => {
    const name = member.name.getText(file);
    const [doc] = ts.getJSDocCommentsAndTags(member).filter(ts.isJSDoc);
    const meaning = oneLine(ts.getTextOfJSDocComment(doc?.comment));
    if (meaning === "") throw new Error(`${fileName}: ${typeName}.${name} has no docstring`);
    const tag = doc?.tags?.find(({ tagName }) => tagName.text === "defaultValue");
    const defaultValue = tag ? oneLine(ts.getTextOfJSDocComment(tag.comment)) : null;
    return { name, defaultValue, isRequired: member.questionToken === undefined, meaning };
  });
}

/** The options as a table of Markdown. */
export function optionTable(rows: readonly OptionRow[]): string {
  const lines = rows.map(({ name, defaultValue, isRequired, meaning }) => {
    const given = defaultValue ?? (isRequired ? "required" : "none");
    return `| \`${name}\` | ${cell(asCode(given))} | ${cell(meaning)} |`;
  });
  return ["| option | default | meaning |", "| --- | --- | --- |", ...lines].join("\n");
}

function oneLine(text: string | undefined): string {
  return (text ?? "").replace(/\s+/g, " ").trim();
}

/** Values are code, phrases are not. */
function asCode(text: string): string {
  return /^("[^"]*"|[\d.]+|true|false|null|new [A-Z].*|host:pid:random)$/.test(text)
    ? `\`${text}\``
    : text;
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|");
}
