import pg from "pg";
import type { PgQuery } from "../pg-like.ts";

/** A node of a plan, as EXPLAIN (FORMAT JSON) gives it. */
export interface PlanNode {
  readonly "Node Type": string;
  readonly "Relation Name"?: string;
  readonly "Index Name"?: string;
  readonly "Subplan Name"?: string;
  readonly "CTE Name"?: string;
  readonly "Actual Rows"?: number;
  readonly "Actual Loops"?: number;
  readonly "Rows Removed by Filter"?: number;
  readonly "Shared Hit Blocks"?: number;
  readonly "Shared Read Blocks"?: number;
  readonly Plans?: readonly PlanNode[];
}

/** A statement that has been planned, and run if asked for. */
export interface Explained {
  /** Every node of the plan. */
  readonly nodes: readonly PlanNode[];
  /** Pages that it read or had at hand, if it ran. */
  readonly buffers: number;
}

/**
 * Explains statements as one session of a store runs them for a long time: prepared, with a generic plan that is
 * kept from when it was first asked for.
 */
export class Explainer {
  readonly #client: pg.PoolClient;
  readonly #prepared = new Map<string, string>();

  private constructor(client: pg.PoolClient) {
    this.#client = client;
  }

  static async open(pool: pg.Pool): Promise<Explainer> {
    const client = await pool.connect();
    await client.query("set plan_cache_mode = force_generic_plan");
    return new Explainer(client);
  }

  /** Sets something for this session, such as `enable_hashjoin = off`. */
  async set(setting: string): Promise<void> {
    await this.#client.query(`set ${setting}`);
  }

  close(): void {
    this.#client.release(true);
  }

  /** The plan, without running the statement. */
  async plan(query: PgQuery): Promise<Explained> {
    return this.#explain("", query);
  }

  /** The plan and what running it costs once everything is at hand; what the statement did is undone. */
  async run(query: PgQuery): Promise<Explained> {
    let best: Explained | undefined;
    for (let n = 0; n < 2; n += 1) {
      await this.#client.query("begin");
      const explained = await this.#explain("analyze, buffers, timing off, ", query);
      await this.#client.query("rollback");
      if (best === undefined || explained.buffers < best.buffers) best = explained;
    }
    return best as Explained;
  }

  /** Runs the statement with its kept plan and returns its rows; what it did is undone. */
  async rows(query: PgQuery): Promise<readonly Record<string, unknown>[]> {
    const execute = await this.#execute(query);
    await this.#client.query("begin");
    const { rows } = await this.#client.query(execute);
    await this.#client.query("rollback");
    return rows;
  }

  async #explain(options: string, query: PgQuery): Promise<Explained> {
    const execute = await this.#execute(query);
    const { rows } = await this.#client.query(`explain (${options}format json) ${execute}`);
    const root: PlanNode = rows[0]["QUERY PLAN"][0].Plan;
    return { nodes: flatten(root), buffers: totalBuffers(root) };
  }

  async #execute({ text, values }: PgQuery): Promise<string> {
    let name = this.#prepared.get(text);
    if (name === undefined) {
      name = `explained_${this.#prepared.size}`;
      await this.#client.query(`prepare ${name} as ${text}`);
      this.#prepared.set(text, name);
    }
    return values.length === 0 ? `execute ${name}` : `execute ${name}(${values.map(literal)})`;
  }
}

function flatten(node: PlanNode): PlanNode[] {
  return [node, ...(node.Plans ?? []).flatMap(flatten)];
}

/**
 * A node counts what goes on below it, but for the writing parts of a WITH that nothing reads: they run at the end,
 * on their own account.
 */
function totalBuffers(root: PlanNode): number {
  const nodes = flatten(root);
  const read = new Set(nodes.map((node) => node["CTE Name"]));
  const apart = nodes.filter(
    (node) =>
      node["Node Type"] === "ModifyTable" &&
      node["Subplan Name"] !== undefined &&
      !read.has(node["Subplan Name"].replace(/^CTE /, "")),
  );
  return [root, ...apart].reduce(
    (sum, node) => sum + (node["Shared Hit Blocks"] ?? 0) + (node["Shared Read Blocks"] ?? 0),
    0,
  );
}

/** A parameter as EXECUTE takes it: text that the server reads as the parameter's type. */
function literal(value: unknown): string {
  if (value === null || value === undefined) return "null";
  return pg.escapeLiteral(Array.isArray(value) ? arrayText(value) : String(value));
}

function arrayText(values: readonly unknown[]): string {
  const items = values.map((value) =>
    value === null ? "null" : `"${String(value).replace(/[\\"]/g, "\\$&")}"`,
  );
  return `{${items.join(",")}}`;
}
