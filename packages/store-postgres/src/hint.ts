import { fromUuid, type JobId } from "@venturi/core";

/** What a notification carries that is not about a single new job: as long as an id, which it stands for. */
export const noHint = "00000000-0000-0000-0000-000000000000";

const uuidPattern = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** The job that a notification names, if it names one. Anybody can notify on a channel, with whatever they like. */
export function readHint(payload: string | undefined): JobId | undefined {
  if (payload === undefined || payload === noHint || !uuidPattern.test(payload)) return undefined;
  return fromUuid(payload);
}
