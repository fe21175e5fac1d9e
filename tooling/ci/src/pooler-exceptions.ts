/** Tests that cannot go through a pooler, by what they test; `npm run pooled` runs them past it. */
export interface PoolerException {
  /** The end of the file's path. */
  readonly file: string;
  /** Those whose full name matches; all of the file where it is left out. */
  readonly tests?: RegExp;
  /** Only where workers do not listen. */
  readonly onlyWhen?: "poll";
  readonly why: string;
}

const startup = "gives the server settings as it connects, which a pooler refuses";
const killed = "ends sessions of the server by their process id or application name";
const prepared = "tells statements by the names that they are prepared under";
const begun = "changes what new sessions begin with, and a pooler keeps those that began before";
const deaf = "needs notifications, which nobody hears who only polls";
const queue = (name: string) => `packages/queue/src/${name}.pg.test.ts`;
const worker = (name: string) => `packages/worker/src/${name}.pg.test.ts`;
const store = (name: string) => `packages/store-postgres/src/${name}.pg.test.ts`;

export const poolerExceptions: readonly PoolerException[] = [
  { file: queue("coalescing"), tests: /fails only the call that needs it/, why: startup },
  { file: queue("connection-loss"), tests: /cancelled by its timeout/, why: startup },
  {
    file: queue("connection-loss"),
    tests: /are logged without secrets|do not end a process that only produces/,
    why: killed,
  },
  { file: queue("drivers"), tests: /prepared under a name/, why: prepared },
  {
    file: queue("events"),
    tests: /is told of before anything is sent/,
    why: "relies on the order in which one connection after the other is opened",
  },
  { file: store("claimer"), tests: /walked past once|near the end of 20,000/, why: prepared },
  { file: store("claimer-all"), why: prepared },
  { file: store("claimer-hints"), why: prepared },
  {
    file: store("claimer-looks"),
    tests: /claimed behind all that was looked at|put back while it was under way/,
    why: prepared,
  },
  { file: store("claimer-odd-rows"), tests: /over a pool/, why: prepared },
  {
    file: store("claimer-passed"),
    tests: /^where looks from the start have become dear/,
    why: prepared,
  },
  {
    file: store("connect"),
    tests: /^connect/,
    why: "counts sessions, and has the server refuse them",
  },
  { file: store("drivers"), tests: /is the default|lends its clients no listeners/, why: startup },
  { file: store("drivers"), tests: /without prepared statements/, why: prepared },
  { file: store("drivers"), tests: /with a listener running/, onlyWhen: "poll", why: deaf },
  {
    file: store("faults"),
    tests: /^a database that is read-only|^a backend that is killed|^a connection lost/,
    why: killed,
  },
  { file: store("faults"), tests: /leaves the connection to nobody/, why: startup },
  { file: store("half-open"), tests: /nobody answers, in a transaction/, why: startup },
  { file: store("isolation"), why: begun },
  {
    file: store("migrate"),
    tests: /if newer is left alone/,
    why: startup,
  },
  { file: store("migrate-names"), onlyWhen: "poll", why: deaf },
  { file: store("notified-outcomes"), onlyWhen: "poll", why: deaf },
  { file: store("notifier"), why: "listens by itself, on connections that it cuts" },
  { file: store("several-hosts"), why: "listens where its statements go, at one of several hosts" },
  {
    file: store("sql/claim-contention"),
    tests: /single jobs as they come|hear of each job/,
    why: prepared,
  },
  { file: store("sql/claim-excluded"), why: prepared },
  { file: store("sql/claim-lockstep"), why: prepared },
  { file: store("sql/promote"), tests: /promotes only when something is due/, why: prepared },
  {
    file: store("store-contract"),
    tests: /requeue wake$|earlier wakes$|live worker wakes$|closed subscription/,
    onlyWhen: "poll",
    why: deaf,
  },
  { file: store("time-zones"), why: begun },
  { file: worker("hints"), onlyWhen: "poll", why: deaf },
  {
    file: worker("lifecycle-new-kinds"),
    tests: /does not keep a worker from running its others/,
    onlyWhen: "poll",
    why: deaf,
  },
  {
    file: worker("merge-wakeup"),
    tests: /may sleep for a minute/,
    onlyWhen: "poll",
    why: deaf,
  },
  {
    file: worker("worked-cases"),
    tests: /however long it may sleep|for later starts then/,
    onlyWhen: "poll",
    why: deaf,
  },
  {
    file: worker("wakeup"),
    tests:
      /it listens on has gone silent|its last look and its sleep|its listening connection|no claim while nothing happens|ten idle workers|cost it no claims/,
    onlyWhen: "poll",
    why: deaf,
  },
  {
    file: worker("connections"),
    why: "counts the server's sessions, some of which a pooler keeps",
  },
  { file: worker("pools"), tests: /killed again and again/, why: killed },
  {
    file: worker("outage"),
    tests: /refuses connections for seconds/,
    onlyWhen: "poll",
    why: "sleeps for longer than it waits, unless the connection that it listens on comes back",
  },
  {
    file: worker("worker"),
    tests: /closes its listening connection|listening connection only begins/,
    onlyWhen: "poll",
    why: "looks at the connection that listens, and who only polls has none",
  },
  {
    file: worker("outage"),
    tests: /the database does not exist/,
    why: "is told so by the server; PgBouncer lets its clients wait for a minute",
  },
];

/** Why a test is left out of those that go through the pooler. */
export function poolerException(
  path: string,
  name: string,
  mode: string | undefined,
): PoolerException | undefined {
  return poolerExceptions.find(
    ({ file, tests, onlyWhen }) =>
      path.endsWith(file) &&
      (tests?.test(name) ?? true) &&
      (onlyWhen === undefined || mode !== "listen"),
  );
}
