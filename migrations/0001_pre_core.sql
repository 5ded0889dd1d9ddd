-- The truth: jobs, task queues, leases, pilots, ads, and what carries messages in and out.
--
-- The hot tables (job, lease, attempt) leave room in their pages and have no index on a column that changes, so
-- that an update stays in its page (HOT) and leaves nothing for an index to carry.

create table task_queue (
    tq_id bigint generated always as identity primary key,
    key bytea not null unique check (length(key) = 32),
    owner text not null,
    owner_group text not null,
    vo text not null,
    cpu_segment integer not null,
    requirements jsonb not null,
    created_at timestamptz not null default now(),
    empty_since timestamptz,
    -- Empty for a while and forgotten by the matchers; the next job of its kind brings it back under the same id.
    removed_at timestamptz
);
comment on table task_queue is 'Waiting jobs with identical requirements share one.';

create table description (
    description_id bigint generated always as identity primary key,
    body jsonb not null
);
comment on table description is 'What jobs are, as submitted; the jobs of an array share one.';

create table submission (
    owner text not null,
    command_id text not null,
    body_digest bytea not null,
    ids jsonb not null,
    taken_at timestamptz not null default now(),
    primary key (owner, command_id)
);
comment on table submission is 'Commands taken, so that one sent twice takes effect once. ids: what was answered.';

create sequence job_id_seq;

create function reserve_job_ids(n bigint) returns bigint language plpgsql as $$
declare
    first_id bigint;
begin
    -- Ids of one submission follow each other. The lock is held for two calls, not for the transaction.
    perform pg_advisory_lock(7101);
    first_id := nextval('job_id_seq');
    if n > 1 then
        perform setval('job_id_seq', first_id + n - 1);
    end if;
    perform pg_advisory_unlock(7101);
    return first_id;
end
$$;

create table job (
    job_id bigint primary key,
    description_id bigint not null references description,
    array_index integer,
    tq_id bigint not null references task_queue,
    owner text not null,
    owner_group text not null,
    vo text not null,
    name text not null,
    user_priority real not null,
    max_attempts smallint not null check (max_attempts between 1 and 100),
    submitted_at timestamptz not null default now(),
    state text not null,
    epoch integer not null default 0 check (epoch >= 0),
    attempts smallint not null default 0,
    event_seq integer not null,
    reason text not null default '',
    site text,
    pilot_id text,
    -- What a pilot that has the job was asked to stop it for, until the job has moved on.
    stop_requested text not null default '' check (stop_requested in ('', 'kill', 'reschedule')),
    changed_at timestamptz not null default now(),
    -- Made from the state table (wms/job/constraint.py); a test holds them equal.
    constraint job_state check (
        state = any (array['Submitting', 'Received', 'Checking', 'Scouting', 'Staging', 'Waiting',
        'Matched', 'Rescheduled', 'Running', 'Stalled', 'Completing', 'Completed', 'Held', 'Done', 'Failed',
        'Killed', 'Deleted'])
    )
) with (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
create index job_by_owner on job (owner, job_id);
comment on table job is 'One row a job; it waits in its task queue exactly while its state is Waiting.';

create function job_owner_is_for_ever() returns trigger language plpgsql as $$
begin
    if (new.owner, new.owner_group, new.vo) is distinct from (old.owner, old.owner_group, old.vo) then
        raise exception 'job %: owner, group and VO never change', old.job_id;
    end if;
    return new;
end
$$;
create trigger job_owner_is_for_ever before update of owner, owner_group, vo on job
    for each row execute function job_owner_is_for_ever();

create table job_event (
    job_id bigint not null,
    seq integer not null,
    at timestamptz not null default now(),
    before text,
    event text not null,
    state text not null,
    epoch integer not null,
    reason text not null default '',
    text text not null default '',
    source text not null,
    primary key (job_id, seq),
    -- Made from the state table (wms/job/constraint.py); a test holds them equal.
    constraint job_event_move check (
        coalesce(before, '') || '/' || event || '/' || state = any (array['/receive/Submitting',
        '/receive/Received', 'Submitting/receive/Received', 'Submitting/check/Checking',
        'Submitting/kill/Killed', 'Submitting/remove/Deleted', 'Received/scout/Scouting',
        'Received/check/Checking', 'Received/stage/Staging', 'Received/enqueue/Waiting',
        'Received/hold/Held', 'Received/fail/Failed', 'Received/kill/Killed', 'Received/remove/Deleted',
        'Checking/scout/Scouting', 'Checking/stage/Staging', 'Checking/enqueue/Waiting',
        'Checking/reschedule/Rescheduled', 'Checking/hold/Held', 'Checking/fail/Failed',
        'Checking/kill/Killed', 'Checking/remove/Deleted', 'Scouting/check/Checking',
        'Scouting/stall/Stalled', 'Scouting/fail/Failed', 'Scouting/kill/Killed', 'Staging/check/Checking',
        'Staging/enqueue/Waiting', 'Staging/hold/Held', 'Staging/fail/Failed', 'Staging/kill/Killed',
        'Waiting/match/Matched', 'Waiting/reschedule/Rescheduled', 'Waiting/hold/Held',
        'Waiting/fail/Failed', 'Waiting/kill/Killed', 'Waiting/remove/Deleted', 'Matched/start/Running',
        'Matched/reschedule/Rescheduled', 'Matched/fail/Failed', 'Matched/kill/Killed',
        'Rescheduled/enqueue/Waiting', 'Rescheduled/receive/Received', 'Rescheduled/hold/Held',
        'Rescheduled/fail/Failed', 'Rescheduled/kill/Killed', 'Rescheduled/remove/Deleted',
        'Running/stall/Stalled', 'Running/complete/Completing', 'Running/finish/Done',
        'Running/reschedule/Rescheduled', 'Running/receive/Received', 'Running/fail/Failed',
        'Running/kill/Killed', 'Stalled/resume/Running', 'Stalled/reschedule/Rescheduled',
        'Stalled/fail/Failed', 'Stalled/kill/Killed', 'Completing/stall/Stalled',
        'Completing/deliver/Completed', 'Completing/finish/Done', 'Completing/fail/Failed',
        'Completing/kill/Killed', 'Completed/finish/Done', 'Completed/fail/Failed', 'Held/release/Waiting',
        'Held/fail/Failed', 'Held/kill/Killed', 'Held/remove/Deleted', 'Done/remove/Deleted',
        'Failed/reschedule/Rescheduled', 'Failed/remove/Deleted', 'Killed/remove/Deleted'])
    )
);
comment on table job_event is 'The history of every job: append only, seq rises by one.';

create table lease (
    job_id bigint primary key,
    epoch integer not null,
    pilot_id text not null,
    request_id text not null,
    phase text not null check (phase in ('offered', 'accepted')),
    granted_at timestamptz not null default now(),
    expires_at timestamptz not null
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
        autovacuum_vacuum_cost_delay = 0);
create index lease_by_request on lease (request_id);
comment on table lease is 'Who holds a job now: at most one row a job, and its epoch is the job''s.';

create table attempt (
    job_id bigint not null,
    epoch integer not null,
    pilot_id text not null,
    site text not null,
    ce text not null,
    offered_at timestamptz not null default now(),
    accepted_at timestamptz,
    started_at timestamptz,
    ended_at timestamptz,
    outcome text check (outcome in ('done', 'failed', 'killed', 'lost', 'withdrawn')),
    reason text,
    reason_text text,
    exit_code integer,
    signal integer,
    cpu_user_seconds double precision,
    cpu_system_seconds double precision,
    wall_seconds double precision,
    max_rss_bytes bigint,
    disk_bytes bigint,
    output_sha256 text,
    output_bytes bigint,
    stdout_tail text,
    stderr_tail text,
    primary key (job_id, epoch),
    check ((ended_at is null) = (outcome is null))
) with (fillfactor = 70);
comment on table attempt is 'Every time a job was given to a pilot, and what it used: charged once, when it ends.';

create table pilot (
    pilot_id text primary key,
    site text not null,
    ce text not null,
    vo text not null,
    dispatcher text not null,
    reference text,
    state text not null default 'Submitting',
    slots integer not null,
    busy integer not null default 0,
    jobs_done integer not null default 0,
    submitted_at timestamptz not null default now(),
    started_at timestamptz,
    seen_at timestamptz,
    ended_at timestamptz,
    reason text not null default '',
    constraint pilot_state check (state in
        ('Submitting', 'Submitted', 'Waiting', 'Running', 'Draining', 'Done', 'Failed', 'Aborted'))
) with (fillfactor = 50);
create index pilot_alive on pilot (site, ce) where ended_at is null;
comment on table pilot is 'Every pilot sent, found again by the id that we chose.';

create table ad (
    site text not null,
    ce text not null,
    element jsonb not null,
    advertised_at timestamptz not null,
    received_at timestamptz not null default now(),
    expires_at timestamptz not null,
    primary key (site, ce)
) with (fillfactor = 50);
comment on table ad is 'What computing elements offer; forgotten when it expires.';

create table outbox (
    outbox_id bigint generated always as identity primary key,
    -- From then on any relay may send them: the one that wrote them has not said that the broker has them.
    due_at timestamptz not null default now() + interval '2 s',
    topic text not null,
    keys bytea[] not null,
    payloads bytea[] not null,
    check (cardinality(keys) = cardinality(payloads) and cardinality(keys) > 0)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
comment on table outbox is 'Messages of committed transactions, until the broker has acknowledged them.';

create table consumer_offset (
    cluster_id text not null,
    consumer text not null,
    topic text not null,
    partition integer not null,
    next_offset bigint not null,
    moved_at timestamptz not null default now(),
    primary key (cluster_id, consumer, topic, partition)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
comment on table consumer_offset is 'How far each consumer is, moved in the transaction of what the messages did.';

create table dead_letter (
    dead_letter_id bigint generated always as identity primary key,
    consumer text not null,
    cluster_id text not null,
    topic text not null,
    partition integer not null,
    message_offset bigint not null,
    key bytea,
    payload bytea not null,
    principal jsonb,
    error text not null,
    arrived_at timestamptz not null default now(),
    replay_requested_at timestamptz,
    replayed_at timestamptz,
    unique (consumer, cluster_id, topic, partition, message_offset)
);
comment on table dead_letter is 'Messages that could not be handled, with the identity verified then; never a token.';

create table service_instance (
    instance_id text primary key,
    service text not null,
    consumers text[] not null,
    host text not null,
    pid integer not null,
    version text not null,
    started_at timestamptz not null default now(),
    heartbeat_at timestamptz not null default now(),
    health jsonb not null default '{}'
) with (fillfactor = 50);
comment on table service_instance is 'Running services; partitions are shared out over those with a fresh heartbeat.';
