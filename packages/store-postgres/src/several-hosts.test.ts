import { expect, test } from "vitest";
import { perHost } from "./several-hosts.ts";

test.each([
  ["postgres://u:p@one/db", ["postgres://u:p@one/db"]],
  ["postgres://one,two/db?x=1,2", ["postgres://one/db?x=1,2", "postgres://two/db?x=1,2"]],
  [
    "postgres://u:p%2C@one:1,[::1]:2/db",
    ["postgres://u:p%2C@one:1/db", "postgres://u:p%2C@[::1]:2/db"],
  ],
  ["postgres://u:a,b@one/db", ["postgres://u:a,b@one/db"]],
  ["/var/run/postgresql db,2", ["/var/run/postgresql db,2"]],
])("%s names its hosts", (given, urls) => {
  expect(perHost(given)).toEqual(urls);
});
