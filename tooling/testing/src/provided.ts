import type {} from "vitest";

/** What the set-up of the postgres tests hands to each test file. */
export interface ProvidedPostgres {
  /** Connection string of the server, to create databases with. */
  readonly serverUrl: string;
  /** A migrated database to copy. */
  readonly template: string;
}

declare module "vitest" {
  export interface ProvidedContext {
    readonly postgres: ProvidedPostgres;
  }
}
