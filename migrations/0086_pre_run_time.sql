-- How long the jobs of a task queue take a slot, as ended attempts tell. Pilots fetch jobs ahead by it.

create table run_time (
    tq_id bigint primary key references task_queue on delete cascade,
    mean double precision not null,
    spread double precision not null,
    changed_at timestamptz not null default now()
);
create index run_time_by_change on run_time (changed_at);
comment on table run_time is 'Seconds that a job of a queue takes a slot: moving mean, and moving mean distance from it.';
