-- A service makes and drops partitions of the history without owning any table: two functions do it as the owner of the schema.

do $$
begin
    execute format('alter function make_partitions(integer) security definer set search_path = %I, pg_temp', current_schema());
    execute format('alter function drop_partitions() security definer set search_path = %I, pg_temp', current_schema());
end
$$;
revoke execute on function make_partitions(integer), drop_partitions() from public;
