/** Keys from a value down to one of its parts. */
export type JsonPath = readonly (string | number)[];

const identifier = /^[A-Za-z_$][\w$]*$/;
const maxPathLength = 300;

/** A path as an error message shows it, as in `payload.items[2]["unit price"]`; the middle of a long one is left out. */
export function showPath(root: string, path: JsonPath): string {
  let text = root;
  for (const key of path) {
    if (typeof key === "number") text += `[${key}]`;
    else text += identifier.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`;
  }
  if (text.length <= maxPathLength) return text;
  return `${text.slice(0, maxPathLength / 2)} … ${text.slice(-maxPathLength / 2)}`;
}
