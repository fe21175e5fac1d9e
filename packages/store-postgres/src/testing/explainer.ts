import { openSession } from "@venturi-tooling/testing";
import pg from "pg";
import type { PgQuery } from "../pg-like.ts";

/** A node of a plan, as EXPLAIN (FORMAT JSON) gives it. */
export interface PlanNode {
  readonly "Node Type": string;
  readonly "Relation Name"?: string;
  readonly "Index Name"?: string;
  readonly Filter?: string;
  readonly "Subplan Name"?: string;
  readonly "CTE Name"?: string;
  readonly "Actual Rows"?: number;
  readonly "Actual Loops"?: number;
  readonly "Rows Removed by Filter"?: number;
  readonly "Shared Hit Blocks"?: number;
  readonly "Shared Read Blocks"?: number;
  readonly Plans?: readonly PlanNode[];
}

/** A statement that has been run. */
export interface Explained {
  /** Every node of the plan. */
  readonly nodes: readonly PlanNode[];
  /** Pages that it read or had at hand. */
  readonly buffers: number;
}

/**
 * Explains statements as one session of a store runs them: prepared, with a generic plan that is kept from when it
 * was first asked for, or with a plan for each call.
 */
export class Explainer {
  readonly #client: pg.Client;
  readonly #prepared = new Map<string, string>();

  private constructor(client: pg.Client) {
    this.#client = client;
  }

  static async open(pool: pg.Pool, mode: "generic" | "custom" = "generic"): Promise<Explainer> {
    const client = await openSession(pool);
    await client.query(`set plan_cache_mode = force_${mode}_plan`);
    return new Explainer(client);
  }

  /** Sets something for this session, such as `enable_hashjoin = off`. */
  async set(setting: string): Promise<void> {
    await this.#client.query(`set ${setting}`);
  }

  close(): void {
    void this.#client.end();
  }

  /** The plan and what running it costs; what the statement did is undone. */
  async run(query: PgQuery): Promise<Explained> {
    const execute = await this.#execute(query);
    await this.#client.query("begin");
    const { rows } = await this.#client.query(
      `explain (analyze, buffers, timing off, format json) ${execute}`,
    );
    await this.#client.query("rollback");
    const root: PlanNode = rows[0]["QUERY PLAN"][0].Plan;
    return { nodes: flatten(root), buffers: totalBuffers(root) };
  }

  /** How many jobs a claim returns, and how many rows it changed; what it did is undone. */
  async outcome(query: PgQuery): Promise<{ readonly returned: number; readonly changed: number }> {
    const execute = await this.#execute(query);
    await this.#client.query("begin");
    const { rows } = await this.#client.query(execute);
    // Rows of this transaction's making.
    const changed = await this.#client.query(
      "select 1 from venturi_queue where xmin = pg_current_xact_id_if_assigned()::xid",
    );
    await this.#client.query("rollback");
    return {
      returned: rows.filter((row) => row.job_id !== null).length,
      changed: changed.rows.length,
    };
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
