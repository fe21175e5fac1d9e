import { createHash } from "node:crypto";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** What a file holds, counted by other means than the example's own. */
export interface ExpectedFile {
  readonly bytes: number;
  readonly sha256: string;
  readonly lines: number;
  readonly words: number;
}

export interface GeneratedTree {
  readonly root: string;
  /** By the bytes of the path in hexadecimal. */
  readonly files: ReadonlyMap<string, ExpectedFile>;
  /** Files by folder, likewise. */
  readonly folders: ReadonlyMap<string, number>;
  remove(): Promise<void>;
}

/** Makes a directory with folders of files, some of them with names that no text can hold. */
export async function generateTree(folders: number, filesEach: number): Promise<GeneratedTree> {
  const root = await mkdtemp(join(tmpdir(), "file-index-tree-"));
  const files = new Map<string, ExpectedFile>();
  const byFolder = new Map([["", 0]]);
  for (let folder = 0; folder < folders; folder += 1) {
    const path = Buffer.from(folder % 3 === 2 ? `deep/${folder} größe` : `folder-${folder}`);
    await mkdir(Buffer.concat([Buffer.from(`${root}/`), path]), { recursive: true });
    if (path.includes("/")) byFolder.set(Buffer.from("deep").toString("hex"), 0);
    byFolder.set(path.toString("hex"), filesEach);
    for (let file = 0; file < filesEach; file += 1) {
      const name = Buffer.concat([path, Buffer.from("/"), fileName(file)]);
      const content = fileContent(folder * filesEach + file);
      await writeFile(Buffer.concat([Buffer.from(`${root}/`), name]), content);
      files.set(name.toString("hex"), expected(content));
    }
  }
  return {
    root,
    files,
    folders: byFolder,
    remove: () => rm(root, { recursive: true, force: true }),
  };
}

function fileName(index: number): Buffer {
  const name = Buffer.from(`file ${index}.txt`);
  // Only some file systems hold names that are no UTF-8.
  if (process.platform !== "linux") return name;
  if (index % 10 === 1) return Buffer.concat([name, Buffer.from([0xff, 0x0a])]);
  return index % 10 === 2 ? Buffer.concat([Buffer.from([0xed, 0xa0, 0x80]), name]) : name;
}

/** Empty files, text, other alphabets, and binary data that spans several reads. */
function fileContent(index: number): Buffer {
  switch (index % 5) {
    case 0:
      return Buffer.alloc(0);
    case 1:
      return Buffer.from("one two\tthree\n\n four".repeat(index % 50));
    case 2:
      return Buffer.from(`wörter-${index} auf Deutsch\r\nund-中文x\f`);
    case 3:
      return Buffer.alloc(70_000 + index, `binary\0${index}\u0001 \n`);
    default:
      return Buffer.from(`{"index": ${index}}`);
  }
}

function expected(content: Buffer): ExpectedFile {
  const text = content.toString("latin1");
  return {
    bytes: content.length,
    sha256: createHash("sha256").update(content).digest("hex"),
    lines: text.split("\n").length - 1,
    words: text.split(/[ \t\n\v\f\r]+/).filter((word) => /[!-~]/.test(word)).length,
  };
}
