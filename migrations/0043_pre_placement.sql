-- Brokered jobs: each waits for a pilot of its own, at the element where the broker placed it.

alter table job add column brokered boolean not null default false;
comment on column job.brokered is 'The broker places it: its task queue is its own, and it waits there only while a placement is open.';

create table broker_order (
    job_id bigint primary key,
    -- The number of the move to Checking: a later one makes the order another.
    seq integer not null,
    asked_at timestamptz not null default now(),
    due_at timestamptz not null default now() + interval '60 s',
    tries integer not null default 1
);
comment on table broker_order is 'Jobs that the broker was asked to place; from due_at on it is asked again.';
create index broker_order_due on broker_order (due_at);

create table placement (
    job_id bigint not null,
    attempt integer not null check (attempt > 0),
    rank integer not null check (rank > 0),
    site text not null,
    ce text not null,
    dispatch text not null check (dispatch in ('pilot', 'direct')),
    state text not null default 'Ordered',
    pilot_id text,
    agreement_id text,
    -- The name that the batch system knows the reservation by; empty: none.
    reservation text not null default '',
    start_at timestamptz,
    latest_start timestamptz,
    reason text not null default '',
    reason_text text not null default '',
    predicted jsonb not null default '{}',
    created_at timestamptz not null default now(),
    changed_at timestamptz not null default now(),
    -- Who carries it out, and until when; from then on anybody may.
    taken_by text,
    taken_until timestamptz,
    primary key (job_id, attempt),
    -- Made from the state table (wms/broker/placement.py); a test holds them equal.
    constraint placement_state check (state = any (array['Ordered', 'Sent', 'Started', 'Failed', 'Ended', 'Abandoned']))
) with (fillfactor = 70);
comment on table placement is 'Every time the broker placed a job at an element, and what became of it.';
create unique index placement_open on placement (job_id) where state in ('Ordered', 'Sent', 'Started');
create index placement_of_pilot on placement (pilot_id) where pilot_id is not null;

-- A brokered job is forgotten with its queue, and what is known of the queue with it.
alter table queue_state drop constraint queue_state_tq_id_fkey,
    add constraint queue_state_tq_id_fkey foreign key (tq_id) references task_queue on delete cascade;
alter table queue_served drop constraint queue_served_tq_id_fkey,
    add constraint queue_served_tq_id_fkey foreign key (tq_id) references task_queue on delete cascade;
alter table wait_reason drop constraint wait_reason_tq_id_fkey,
    add constraint wait_reason_tq_id_fkey foreign key (tq_id) references task_queue on delete cascade;

-- A job whose placement has failed goes back to the broker. Made from the state table (wms/job/constraint.py), the
-- frequent first; a test holds them equal. Partitions have the constraint from before they were attached.
do $$
declare
    child regclass;
begin
    alter table job_move drop constraint job_move_legal;
    for child in select inhrelid::regclass from pg_inherits where inhparent = 'job_move'::regclass loop
        execute format('alter table %s drop constraint if exists job_move_legal', child);
    end loop;
end
$$;
alter table job_move add constraint job_move_legal check (
    coalesce(before, '') || '/' || event || '/' || state = any (array['Waiting/match/Matched',
        'Matched/start/Running', 'Running/finish/Done', 'Submitting/receive/Received',
        'Submitting/check/Checking', 'Submitting/kill/Killed', 'Submitting/remove/Deleted',
        'Received/scout/Scouting', 'Received/check/Checking', 'Received/stage/Staging',
        'Received/enqueue/Waiting', 'Received/hold/Held', 'Received/fail/Failed', 'Received/kill/Killed',
        'Received/remove/Deleted', 'Checking/scout/Scouting', 'Checking/stage/Staging',
        'Checking/enqueue/Waiting', 'Checking/reschedule/Rescheduled', 'Checking/hold/Held',
        'Checking/fail/Failed', 'Checking/kill/Killed', 'Checking/remove/Deleted',
        'Scouting/check/Checking', 'Scouting/stall/Stalled', 'Scouting/fail/Failed', 'Scouting/kill/Killed',
        'Staging/check/Checking', 'Staging/enqueue/Waiting', 'Staging/hold/Held', 'Staging/fail/Failed',
        'Staging/kill/Killed', 'Waiting/check/Checking', 'Waiting/reschedule/Rescheduled',
        'Waiting/hold/Held', 'Waiting/fail/Failed', 'Waiting/kill/Killed', 'Waiting/remove/Deleted',
        'Matched/reschedule/Rescheduled', 'Matched/fail/Failed', 'Matched/kill/Killed',
        'Rescheduled/enqueue/Waiting', 'Rescheduled/receive/Received', 'Rescheduled/hold/Held',
        'Rescheduled/fail/Failed', 'Rescheduled/kill/Killed', 'Rescheduled/remove/Deleted',
        'Running/stall/Stalled', 'Running/complete/Completing', 'Running/reschedule/Rescheduled',
        'Running/receive/Received', 'Running/fail/Failed', 'Running/kill/Killed', 'Stalled/resume/Running',
        'Stalled/reschedule/Rescheduled', 'Stalled/fail/Failed', 'Stalled/kill/Killed',
        'Completing/stall/Stalled', 'Completing/deliver/Completed', 'Completing/finish/Done',
        'Completing/fail/Failed', 'Completing/kill/Killed', 'Completed/finish/Done',
        'Completed/fail/Failed', 'Held/release/Waiting', 'Held/fail/Failed', 'Held/kill/Killed',
        'Held/remove/Deleted', 'Done/remove/Deleted', 'Failed/reschedule/Rescheduled',
        'Failed/remove/Deleted', 'Killed/remove/Deleted', '/receive/Submitting', '/receive/Received'])
);
