/** Plots as SVG text, small enough to be written by hand and to read well on light and dark pages. */

const palette = ["#2f6fde", "#d9622b", "#2a9d63", "#8e5bd0", "#c23b6b", "#7a7a7a", "#b08900"];
const font = `font-family="system-ui, sans-serif" fill="#7a7a7a"`;
const text = `${font} font-size="12"`;

function escaped(label: string): string {
  return label.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}

/** A number as labels show it. */
function short(value: number): string {
  if (!Number.isFinite(value)) return "–";
  if (value >= 10_000) return `${Math.round(value / 1_000)}k`;
  if (value >= 100) return Math.round(value).toLocaleString("en-US");
  return value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

function frame(width: number, height: number, title: string, parts: readonly string[]): string {
  const name = escaped(title);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${name}">`,
    `<text x="0" y="16" ${font} font-size="14" font-weight="600">${name}</text>`,
    ...parts,
    "</svg>\n",
  ].join("\n");
}

export interface Bar {
  readonly label: string;
  readonly value: number;
  readonly lowest: number;
  readonly highest: number;
}

/** Horizontal bars from 0, each with the spread of its rounds. */
export function bars(title: string, items: readonly Bar[]): string {
  const [left, width, row] = [210, 720, 26];
  const most = Math.max(...items.map(({ highest }) => highest));
  const x = (value: number) => left + (value / most) * (width - left - 80);
  const parts = items.flatMap(({ label, value, lowest, highest }, index) => {
    const y = 30 + index * row;
    const middle = y + 9;
    const color = label.startsWith("venturi") ? palette[0] : "#9aa4b2";
    return [
      `<text x="${left - 8}" y="${y + 13}" ${text} text-anchor="end">${escaped(label)}</text>`,
      `<rect x="${left}" y="${y}" width="${(x(value) - left).toFixed(1)}" height="18" rx="2" fill="${color}"/>`,
      `<path d="M${x(lowest).toFixed(1)} ${middle}H${x(highest).toFixed(1)}" stroke="#333" stroke-width="2"/>`,
      `<text x="${(x(highest) + 6).toFixed(1)}" y="${y + 13}" ${text}>${short(value)}</text>`,
    ];
  });
  return frame(width, 40 + items.length * row, title, parts);
}

export interface Line {
  readonly label: string;
  readonly points: readonly { readonly x: number; readonly y: number }[];
}

/** Lines over a logarithmic axis of few values, from 0 upwards. */
export function lines(title: string, xLabel: string, items: readonly Line[]): string {
  const [left, right, top, bottom, width, height] = [60, 190, 34, 40, 720, 360];
  const all = items.flatMap(({ points }) => points);
  const xs = [...new Set(all.map((point) => point.x))].sort((a, b) => a - b);
  const most = Math.max(...all.map((point) => point.y));
  const [first = 1, last = 1] = [xs[0], xs.at(-1)];
  const share = (x: number) => (last > first ? Math.log(x / first) / Math.log(last / first) : 0.5);
  const px = (x: number) => (left + share(x) * (width - left - right)).toFixed(1);
  const py = (y: number) => (height - bottom - (y / most) * (height - top - bottom)).toFixed(1);
  const grid = [0, 0.25, 0.5, 0.75, 1].flatMap((part) => [
    `<path d="M${left} ${py(part * most)}H${width - right}" stroke="#9aa4b2" stroke-opacity="0.3"/>`,
    `<text x="${left - 6}" y="${Number(py(part * most)) + 4}" ${text} text-anchor="end">${part === 0 ? "0" : short(part * most)}</text>`,
  ]);
  const ticks = xs.map(
    (x) =>
      `<text x="${px(x)}" y="${height - bottom + 16}" ${text} text-anchor="middle">${x}</text>`,
  );
  const curves = items.flatMap(({ label, points }, index) => {
    const color = palette[index % palette.length];
    const path = points.map((point, at) => `${at === 0 ? "M" : "L"}${px(point.x)} ${py(point.y)}`);
    const y = top + 8 + index * 18;
    return [
      `<path d="${path.join("")}" fill="none" stroke="${color}" stroke-width="2"/>`,
      ...points.map((p) => `<circle cx="${px(p.x)}" cy="${py(p.y)}" r="3" fill="${color}"/>`),
      `<path d="M${width - right + 14} ${y - 4}h16" stroke="${color}" stroke-width="3"/>`,
      `<text x="${width - right + 36}" y="${y}" ${text}>${escaped(label)}</text>`,
    ];
  });
  const caption = `<text x="${(width - right + left) / 2}" y="${height - 6}" ${text} text-anchor="middle">${escaped(xLabel)}</text>`;
  return frame(width, height, title, [...grid, ...ticks, ...curves, caption]);
}
