import type pg from "pg";

/** Gives handlers a table to write to. */
export async function createWritten(client: pg.Client): Promise<void> {
  await client.query("create table chaos_written (id text not null, run integer not null)");
}

/** The same, and keeps what a cleanup deletes, for the checks. */
export async function createArchive(client: pg.Client): Promise<void> {
  await createWritten(client);
  for (const table of ["jobs", "journal"]) {
    await client.query(`create table chaos_deleted_${table} (like venturi_${table});
      create function chaos_keep_${table}() returns trigger language plpgsql security definer as $$
        begin insert into public.chaos_deleted_${table} select * from gone; return null; end $$;
      create trigger chaos_keep after delete on venturi_${table} referencing old table as gone
        for each statement execute function chaos_keep_${table}();
      create view chaos_${table} as
        select * from venturi_${table} union all select * from chaos_deleted_${table}`);
  }
}
