-- What a waiting job is told: which computing elements are known, how its task queue does, and why it waits.

alter table ad add column withdrawn_at timestamptz;
comment on table ad is 'What computing elements offer, and lately offered; forgotten when long silent.';

create table queue_watch (
    place smallint primary key default 1 check (place = 1),
    matcher text not null,
    law text not null,
    at timestamptz not null default now()
) with (fillfactor = 10);
comment on table queue_watch is 'The one matcher that says how task queues do, and when it last did.';

create table queue_state (
    tq_id bigint primary key references task_queue,
    waiting bigint not null check (waiting >= 0),
    weight double precision not null,
    -- Of each user priority: [priority, jobs, oldest id, newest id].
    levels jsonb not null,
    since timestamptz not null default now()
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
comment on table queue_state is 'How task queues do, as the watching matcher has it in memory: written when it changes.';

create table queue_served (
    tq_id bigint primary key references task_queue,
    -- Matches, those of long ago fading: what it is later is a formula, not an update.
    faded_count double precision not null,
    -- The first of them came in the second before.
    since timestamptz not null default now() - interval '1 s',
    at timestamptz not null default now()
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
comment on table queue_served is 'How fast task queues are served, added up by all matchers.';

create table wait_reason (
    tq_id bigint primary key references task_queue,
    code text not null,
    text text not null,
    -- The part of the draws for free slots that falls to the queue.
    chance double precision not null,
    since timestamptz not null default now()
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
comment on table wait_reason is 'Why the jobs of a task queue wait: one row for all of them.';
