-- Sweeps: many jobs of one description. Until something happens to its jobs one by one, they have no rows of their own:
-- a block stands for jobs of consecutive ids that have had the same life so far.

create table sweep (
    first bigint primary key,
    last bigint not null,
    description_id bigint not null references description,
    tq_id bigint not null references task_queue,
    owner text not null,
    owner_group text not null,
    vo text not null,
    -- As submitted: each job's own has its index and parameters in the place of the braces.
    name text not null,
    user_priority real not null,
    max_attempts smallint not null check (max_attempts between 1 and 100),
    -- Names of its lists of parameters.
    parameters text[] not null default '{}',
    submitted_at timestamptz not null default now(),
    check (last >= first)
);
create index sweep_by_owner on sweep (owner, first);
comment on table sweep is 'What one description made many jobs of: job first + n is number n. A row never changes; its lock is that of its blocks.';

create function sweep_is_for_ever() returns trigger language plpgsql as $$
begin
    raise exception 'sweep %: what was submitted never changes', old.first;
end
$$;
create trigger sweep_is_for_ever before update on sweep for each row execute function sweep_is_for_ever();

create table block (
    first bigint primary key,
    last bigint not null,
    sweep bigint not null references sweep,
    state text not null,
    event_seq integer not null,
    reason text not null default '',
    changed_at timestamptz not null default now(),
    -- The moves of each of its jobs, as in job_event: seq, at, before, event, state, reason, text, source.
    history jsonb not null,
    check (last >= first),
    -- What users can make of a job that no pilot has had.
    constraint block_state check (state in ('Waiting', 'Held', 'Killed', 'Deleted')),
    constraint block_alone exclude using gist (int8range(first, last, '[]') with &&)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);
create index block_by_sweep on block (sweep);
comment on table block is 'Jobs of a sweep that have no row yet, all alike. A job is in a block or in table job, never in both.';

create table parameter (
    description_id bigint not null references description,
    chunk integer not null,
    -- By name the values of the jobs chunk * 1000 to chunk * 1000 + 999.
    columns jsonb not null,
    primary key (description_id, chunk)
);
comment on table parameter is 'Lists of parameters of sweeps: beside the description, so that no job need carry those of all.';

alter table job add column parameters jsonb;
comment on column job.parameters is 'The values of this job alone.';

create view waiting as
select tq_id, sum(jobs)::bigint as jobs
from (
    select tq_id, count(*) as jobs from job where state = 'Waiting' group by tq_id
    union all
    select s.tq_id, b.last - b.first + 1 from block b join sweep s on s.first = b.sweep where b.state = 'Waiting'
) w
group by tq_id;
comment on view waiting is 'How many jobs wait in each task queue that has any, with rows or in blocks.';

-- Arrays of before have all their rows, and are sweeps all the same.
insert into sweep (first, last, description_id, tq_id, owner, owner_group, vo, name, user_priority, max_attempts, submitted_at)
select min(job_id), max(job_id), description_id, min(tq_id), min(owner), min(owner_group), min(vo), min(name),
       min(user_priority), min(max_attempts), min(submitted_at)
from job where array_index is not null group by description_id;
