-- What has ended can be forgotten: history and attempts in partitions by job id, which go as a whole once they are empty.

-- Jobs of one partition: the ids from n to n + 1 times as many.
create function partition_size() returns bigint language sql immutable as 'select 5000000::bigint';

-- What there is becomes the first partition, up to where no id was given out yet.
do $$
declare
    bound bigint;
    parent text;
begin
    select (case when is_called then last_value else last_value - 1 end / partition_size() + 1) * partition_size()
    into bound from job_id_seq;
    foreach parent in array array['job_move', 'ended_attempt'] loop
        execute format('alter table %I rename to %I', parent, parent || '_first');
        execute format('alter table %I rename constraint %I to %I', parent || '_first', parent || '_pkey', parent || '_first_pkey');
        execute format('create table %I (like %I including defaults including constraints including comments) partition by range (job_id)',
                       parent, parent || '_first');
        execute format('alter table %I attach partition %I for values from (minvalue) to (%s)', parent, parent || '_first', bound);
        -- For ids that nobody has made room for: never lost, and moved when somebody does.
        execute format('create table %I partition of %I default', parent || '_rest', parent);
    end loop;
end
$$;
alter table job_move add primary key (job_id, seq);
alter table ended_attempt add primary key (job_id, epoch);
comment on table job_move is 'The moves of jobs that their rows and leases do not tell: append only.';
comment on table ended_attempt is 'Every time a job was given to a pilot, and what it used: charged once, when it ends.';

-- The views go on showing all of it.
do $$
begin
    execute 'create or replace view job_event as ' || replace(pg_get_viewdef('job_event'::regclass), 'job_move_first', 'job_move');
    execute 'create or replace view attempt as '
        || replace(pg_get_viewdef('attempt'::regclass), 'ended_attempt_first', 'ended_attempt');
end
$$;

create function make_partitions(ahead integer) returns integer language plpgsql as $$
declare
    low bigint;
    parent text;
    child text;
    made integer := 0;
begin
    perform pg_advisory_xact_lock(7102);
    for low in
        select n * partition_size()
        from (select last_value / partition_size() as now from job_id_seq) s, generate_series(s.now + 1, s.now + ahead) as n
    loop
        foreach parent in array array['job_move', 'ended_attempt'] loop
            child := parent || '_' || low / partition_size();
            continue when to_regclass(child) is not null;
            execute format('create table %I (like %I including defaults including constraints including indexes)', child, parent);
            execute format('lock table %I in access exclusive mode', parent || '_rest');
            execute format('with moved as (delete from %I where job_id >= %s and job_id < %s returning *) insert into %I select * from moved',
                           parent || '_rest', low, low + partition_size(), child);
            execute format('alter table %I attach partition %I for values from (%s) to (%s)',
                           parent, child, low, low + partition_size());
            made := made + 1;
        end loop;
    end loop;
    return made;
end
$$;
comment on function make_partitions is 'Make room for the history of ids that will be given out soon; returns how many tables that took.';

create function drop_partitions() returns integer language plpgsql as $$
declare
    low bigint;
    parent text;
    child text;
    dropped integer := 0;
    empty boolean;
begin
    perform pg_advisory_xact_lock(7102);
    -- The newest two stay: a transaction may be about to write there.
    for low in
        select n * partition_size()
        from (select last_value / partition_size() as now from job_id_seq) s, generate_series(0, s.now - 2) as n
    loop
        foreach parent in array array['job_move', 'ended_attempt'] loop
            child := parent || '_' || low / partition_size();
            continue when to_regclass(child) is null;
            execute format('select not exists (select from job where job_id >= %s and job_id < %s) and not exists (select from %I)',
                           low, low + partition_size(), child) into empty;
            continue when not empty;
            execute format('drop table %I', child);
            dropped := dropped + 1;
        end loop;
    end loop;
    return dropped;
end
$$;
comment on function drop_partitions is 'Drop the tables of history in which nothing is left; returns how many.';

select make_partitions(4);

-- Who forgets descriptions would have every job looked at for each; only who forgets its jobs forgets a description.
alter table job drop constraint job_description_id_fkey;
create index sweep_by_description on sweep (description_id);

create table forgetting (
    first bigint primary key,
    last bigint not null,
    description_id bigint not null
);
comment on table forgetting is 'Sweeps that are being forgotten: their jobs go in small batches, and then their description.';

create table forgotten (
    what text primary key,
    before timestamptz not null
);
comment on table forgotten is 'What is older than this was forgotten on purpose.';

create index submission_by_age on submission using brin (taken_at) with (autosummarize = on);
