/** The middle value; of an even number, the lower of the two in the middle. */
export function median(values) {
    const sorted = [...values].sort((a, b) => a - b);
    return sorted[Math.floor((sorted.length - 1) / 2)] ?? Number.NaN;
}
/** "median (lowest–highest)" in whole numbers, or with the digits asked for. */
export function spread(values, digits = 0) {
    const show = (value) => value.toFixed(digits);
    return `${show(median(values))} (${show(Math.min(...values))}–${show(Math.max(...values))})`;
}
