/** What a byte does: the lowest bit is what follows, inside a word or not; the others are counted. */
const insideWord = 1;
const beginsWord = 2;
const endsLine = 4;

/**
 * By state and byte, so that a file's bytes are counted without a branch. In the C locale whitespace
 * ends a word, a printable ASCII byte begins one, and every other byte leaves things as they are.
 */
const steps = new Uint8Array(512);
for (let byte = 0; byte < 256; byte += 1) {
  const isSpace = byte === 0x20 || (byte >= 0x09 && byte <= 0x0d);
  const isPrintable = byte > 0x20 && byte < 0x7f;
  steps[byte] = isPrintable ? insideWord | beginsWord : 0;
  steps[byte + 256] = isSpace ? 0 : insideWord;
}
steps[0x0a] = endsLine;
steps[0x0a + 256] = endsLine;

/**
 * Counts as GNU `wc -l` and `wc -w` do in the C locale: lines are newline bytes, a word is what
 * stands between whitespace, provided that there is at least one printable ASCII byte in it.
 */
export class TextCounter {
  lines = 0;
  words = 0;
  #step = 0;

  update(bytes: Uint8Array): void {
    let lines = 0;
    let words = 0;
    let step = this.#step;
    for (let index = 0; index < bytes.length; index += 1) {
      step = steps[((step & insideWord) << 8) | (bytes[index] as number)] as number;
      words += (step & beginsWord) >> 1;
      lines += step >> 2;
    }
    this.lines += lines;
    this.words += words;
    this.#step = step;
  }
}
