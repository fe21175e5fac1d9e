/**
 * Sends requests in one statement, or in several where a job stands among them more than once: the parts of one
 * statement do not see one another's work, so that two requests for one job would both be written down.
 */
export async function inRounds<T extends { readonly jobId: string }, R>(
  requests: readonly T[],
  send: (round: readonly T[]) => Promise<readonly R[]>,
): Promise<readonly R[]> {
  const seen = new Set<string>();
  const again: number[] = [];
  for (const [place, { jobId }] of requests.entries()) {
    if (seen.has(jobId)) again.push(place);
    seen.add(jobId);
  }
  if (again.length === 0) return send(requests);
  const repeats = new Set(again);
  const first = await send(requests.filter((_, place) => !repeats.has(place)));
  const rest = await inRounds(
    again.map((place) => requests[place] as T),
    send,
  );
  const answers = { first: first.values(), rest: rest.values() };
  return requests.map(
    (_, place) => answers[repeats.has(place) ? "rest" : "first"].next().value as R,
  );
}
