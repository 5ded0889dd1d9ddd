-- Fewer rows for the same history: what a row already says is not written a second time.
--
-- That a job was received and queued is said by its own row, that it was matched and started by its lease, as long as
-- there is one; when the lease ends, its attempt and its moves are written down at once. The views `job_event` and
-- `attempt` show it all as before. Services must be stopped while this runs.

alter table lease
    add column site text not null default '',
    add column ce text not null default '',
    -- The numbers, in the job's history, of the match and of the start.
    add column seq integer not null default 0,
    add column start_seq integer,
    add column accepted_at timestamptz,
    add column started_at timestamptz;
update lease l
set site = a.site, ce = a.ce, granted_at = a.offered_at, accepted_at = a.accepted_at, started_at = a.started_at,
    seq = (select max(e.seq) from job_event e where e.job_id = l.job_id and e.event = 'match'),
    start_seq = (select max(e.seq) from job_event e where e.job_id = l.job_id and e.event = 'start' and e.epoch = l.epoch)
from attempt a where a.job_id = l.job_id and a.epoch = l.epoch;
alter table lease
    alter column site drop default, alter column ce drop default, alter column seq drop default;
-- A request that is asked again is rare, and leases are few beside jobs.
drop index lease_by_request;

alter table attempt rename to ended_attempt;
alter table ended_attempt rename constraint attempt_pkey to ended_attempt_pkey;
delete from ended_attempt where ended_at is null;
comment on table ended_attempt is 'Every time a job was given to a pilot, and what it used: charged once, when it ends.';

alter table job_event rename to job_move;
alter table job_move rename constraint job_event_pkey to job_move_pkey;
alter table job_move drop constraint job_event_move;
delete from job_move where seq = 1 and event = 'receive' or seq = 2 and event = 'enqueue';
delete from job_move e using lease l where e.job_id = l.job_id and (e.seq = l.seq or e.seq = l.start_seq);
-- Made from the state table (wms/job/constraint.py), the frequent first; a test holds them equal.
alter table job_move add constraint job_move_legal check (
    coalesce(before, '') || '/' || event || '/' || state = any (array['Waiting/match/Matched', 'Matched/start/Running', 'Running/finish/Done',
        'Submitting/receive/Received', 'Submitting/check/Checking', 'Submitting/kill/Killed',
        'Submitting/remove/Deleted', 'Received/scout/Scouting', 'Received/check/Checking',
        'Received/stage/Staging', 'Received/enqueue/Waiting', 'Received/hold/Held', 'Received/fail/Failed',
        'Received/kill/Killed', 'Received/remove/Deleted', 'Checking/scout/Scouting', 'Checking/stage/Staging',
        'Checking/enqueue/Waiting', 'Checking/reschedule/Rescheduled', 'Checking/hold/Held',
        'Checking/fail/Failed', 'Checking/kill/Killed', 'Checking/remove/Deleted', 'Scouting/check/Checking',
        'Scouting/stall/Stalled', 'Scouting/fail/Failed', 'Scouting/kill/Killed', 'Staging/check/Checking',
        'Staging/enqueue/Waiting', 'Staging/hold/Held', 'Staging/fail/Failed', 'Staging/kill/Killed',
        'Waiting/reschedule/Rescheduled', 'Waiting/hold/Held', 'Waiting/fail/Failed', 'Waiting/kill/Killed',
        'Waiting/remove/Deleted', 'Matched/reschedule/Rescheduled', 'Matched/fail/Failed',
        'Matched/kill/Killed', 'Rescheduled/enqueue/Waiting', 'Rescheduled/receive/Received',
        'Rescheduled/hold/Held', 'Rescheduled/fail/Failed', 'Rescheduled/kill/Killed',
        'Rescheduled/remove/Deleted', 'Running/stall/Stalled', 'Running/complete/Completing',
        'Running/reschedule/Rescheduled', 'Running/receive/Received', 'Running/fail/Failed',
        'Running/kill/Killed', 'Stalled/resume/Running', 'Stalled/reschedule/Rescheduled',
        'Stalled/fail/Failed', 'Stalled/kill/Killed', 'Completing/stall/Stalled',
        'Completing/deliver/Completed', 'Completing/finish/Done', 'Completing/fail/Failed',
        'Completing/kill/Killed', 'Completed/finish/Done', 'Completed/fail/Failed', 'Held/release/Waiting',
        'Held/fail/Failed', 'Held/kill/Killed', 'Held/remove/Deleted', 'Done/remove/Deleted',
        'Failed/reschedule/Rescheduled', 'Failed/remove/Deleted', 'Killed/remove/Deleted',
        '/receive/Submitting', '/receive/Received'])
);
comment on table job_move is 'The moves of jobs that their rows and leases do not tell: append only.';

create view attempt as
select job_id, epoch, pilot_id, site, ce, offered_at, accepted_at, started_at, ended_at, outcome, reason, reason_text,
       exit_code, signal, cpu_user_seconds, cpu_system_seconds, wall_seconds, max_rss_bytes, disk_bytes, output_sha256,
       output_bytes, stdout_tail, stderr_tail
from ended_attempt
union all
select job_id, epoch, pilot_id, site, ce, granted_at, accepted_at, started_at, null, null, null, null,
       null, null, null, null, null, null, null, null, null, null, null
from lease;
comment on view attempt is 'Every time a job was given to a pilot, those of now included.';

create view job_event as
select job_id, seq, at, before, event, state, epoch, reason, text, source from job_move
union all
select job_id, 1, submitted_at, null, 'receive', 'Received', 0, 'ACCEPTED', '', 'job_manager' from job
union all
select job_id, 2, submitted_at, 'Received', 'enqueue', 'Waiting', 0, 'QUEUED', '', 'job_manager' from job
union all
select job_id, seq, granted_at, 'Waiting', 'match', 'Matched', epoch, 'OFFERED', pilot_id, 'matcher' from lease
union all
select job_id, start_seq, started_at, 'Matched', 'start', 'Running', epoch, 'STARTED', '', 'job_agent'
from lease where start_seq is not null;
comment on view job_event is 'The history of every job: seq rises by one.';

-- Kept as it came: nobody asks what is in it but to hand it on.
alter table description alter column body type json using body::json;
-- A description has the id of the first job that it describes: no other is in the way of those to come.
alter table description alter column description_id drop identity;
select setval('job_id_seq', max(description_id)) from description having max(description_id) > (select last_value from job_id_seq);

-- Messages live for a moment: to press them together costs more than it saves.
alter table outbox alter column keys set storage external, alter column payloads set storage external;
