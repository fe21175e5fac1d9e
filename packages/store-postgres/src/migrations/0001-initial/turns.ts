import type { Names } from "../../names.ts";

/**
 * `turns_v1`: how many jobs of each kind and tier the next turns of the priority rotation take from what waits.
 *
 * The same rule as `takeTurns` in core, which defines it: the turn `counter + i` has a floor f; it takes the first
 * job of the tiers f…2, and if they hold none, the first of the tiers 0…f−1, passing kinds whose room is used up.
 * `kinds` and `tiers` describe the waiting jobs in (tier, arrival) order.
 */
export function turns(n: Names): string[] {
  return [
    `create function ${n.of("turns_v1")}(turns integer, counter bigint, ratio integer, kinds integer[], tiers smallint[],
  room_kinds integer[], room integer[]) returns table (kind_id integer, priority smallint, n integer)
language plpgsql immutable set search_path = pg_catalog, pg_temp as ${n.body}
declare
  v_heads integer[] := array[1, 1, 1];
  v_ends integer[] := array[0, 0, 0];
  v_taken integer[] := array_fill(0, array[greatest(cardinality(room_kinds), 1) * 3]);
  v_room integer[] := room;
  v_slots integer[];
  v_floor integer; v_tier integer; v_slot integer; v_done boolean; i integer; j integer;
begin
  -- Where each job's kind stands in room_kinds, and where each tier ends.
  select array_agg(array_position(room_kinds, u.kind) order by u.ord) into v_slots
    from unnest(kinds) with ordinality u(kind, ord);
  for i in 0 .. 2 loop
    v_ends[i + 1] := (select coalesce(max(u.ord), case when i = 0 then 0 else v_ends[i] end)
      from unnest(tiers) with ordinality u(tier, ord) where u.tier = i);
  end loop;
  v_heads := array[1, v_ends[1] + 1, v_ends[2] + 1];

  for i in 1 .. turns loop
    v_floor := case when ratio is null or ratio < 2 then 0
      when (counter + i) % (ratio::bigint * ratio) = 0 then 2
      when (counter + i) % ratio = 0 then 1 else 0 end;
    v_done := false;
    for j in 0 .. 2 loop
      -- Tiers f..2 first, then 0..f-1.
      v_tier := (v_floor + j) % 3;
      while v_heads[v_tier + 1] <= v_ends[v_tier + 1] loop
        v_slot := v_slots[v_heads[v_tier + 1]];
        v_heads[v_tier + 1] := v_heads[v_tier + 1] + 1;
        if v_room[v_slot] > 0 then
          v_room[v_slot] := v_room[v_slot] - 1;
          v_taken[v_slot * 3 + v_tier - 2] := v_taken[v_slot * 3 + v_tier - 2] + 1;
          v_done := true;
          exit;
        end if;
      end loop;
      exit when v_done;
    end loop;
    exit when not v_done;
  end loop;

  for i in 1 .. cardinality(room_kinds) loop
    for j in 0 .. 2 loop
      if v_taken[i * 3 + j - 2] > 0 then
        kind_id := room_kinds[i]; priority := j; n := v_taken[i * 3 + j - 2];
        return next;
      end if;
    end loop;
  end loop;
end
${n.body}`,
  ];
}
