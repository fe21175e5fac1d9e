/** The settings as the harness passed them. */
export function readSettings() {
    return JSON.parse(process.argv[2] ?? "");
}
/** A payload of about the size asked for. */
export function payload(index, bytes) {
    return { id: index, pad: "x".repeat(Math.max(0, bytes - 18)) };
}
/** Items of an enqueue call, as large as both systems are given. */
export const batchSize = 1_000;
