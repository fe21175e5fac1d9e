const separator = 1;
const printable = 2;

/** What a byte is to `wc` in the C locale. */
const classes = new Uint8Array(256).fill(printable, 0x21, 0x7f);
for (const byte of Buffer.from(" \t\n\v\f\r")) classes[byte] = separator;

const newline = 0x0a;

/**
 * Counts as GNU `wc -l` and `wc -w` do in the C locale: lines are newline bytes, a word is what
 * stands between whitespace, provided that there is at least one printable ASCII byte in it.
 */
export class TextCounter {
  lines = 0;
  words = 0;
  #isInWord = false;

  update(bytes: Uint8Array): void {
    let lines = 0;
    let words = 0;
    let isInWord = this.#isInWord;
    for (let index = 0; index < bytes.length; index += 1) {
      const byte = bytes[index] as number;
      const kind = classes[byte];
      if (kind === printable) {
        if (!isInWord) words += 1;
        isInWord = true;
      } else if (kind === separator) {
        isInWord = false;
        if (byte === newline) lines += 1;
      }
    }
    this.lines += lines;
    this.words += words;
    this.#isInWord = isInWord;
  }
}
