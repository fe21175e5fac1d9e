/** What the keeper process is started with. */
export interface KeeperRequest {
  readonly version: number;
  readonly settings: Readonly<Record<string, string>>;
}

/** What it may be asked for afterwards, a line of JSON each. */
export interface KeeperCommand {
  readonly call: number;
  readonly verb: "crash" | "halt" | "start" | "standby" | "promote";
}

/** A line of JSON: the answer to its start, and to each command with its number. */
export type KeeperAnswer =
  | { readonly call?: number; readonly url: string }
  | { readonly call?: number; readonly error: string };
