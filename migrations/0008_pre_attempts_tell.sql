-- An ended attempt goes on telling what its lease told, and its own end: the moves of a usual life are rows no more.
--
-- An attempt counts from when it is offered, in the update that the match makes anyway; what is withdrawn is given back.
-- Services must be stopped while this runs.

alter table ended_attempt
    -- The numbers, in the job's history, of the match, of the start, and of the end where the payload's end was the job's.
    -- Null: written as rows of job_move.
    add column match_seq integer,
    add column start_seq integer,
    add column end_seq integer,
    add constraint ended_attempt_tells_an_end check (end_seq is null or outcome in ('done', 'failed', 'killed'));

create or replace view job_event as
select job_id, seq, at, before, event, state, epoch, reason, text, source from job_move
union all
select job_id, 1, submitted_at, null, 'receive', 'Received', 0, 'ACCEPTED', '', 'job_manager' from job
union all
select job_id, 2, submitted_at, 'Received', 'enqueue', 'Waiting', 0, 'QUEUED', '', 'job_manager' from job
union all
select job_id, seq, granted_at, 'Waiting', 'match', 'Matched', epoch, 'OFFERED', pilot_id, 'matcher' from lease
union all
select job_id, start_seq, started_at, 'Matched', 'start', 'Running', epoch, 'STARTED', '', 'job_agent'
from lease where start_seq is not null
union all
select job_id, match_seq, offered_at, 'Waiting', 'match', 'Matched', epoch, 'OFFERED', pilot_id, 'matcher'
from ended_attempt where match_seq is not null
union all
select job_id, start_seq, started_at, 'Matched', 'start', 'Running', epoch, 'STARTED', '', 'job_agent'
from ended_attempt where start_seq is not null
union all
select job_id, end_seq, ended_at, 'Running',
       case outcome when 'done' then 'finish' when 'failed' then 'fail' else 'kill' end,
       case outcome when 'done' then 'Done' when 'failed' then 'Failed' else 'Killed' end,
       epoch, reason, reason_text, 'job_agent'
from ended_attempt where end_seq is not null;

update job j set attempts = attempts + 1 from lease l where l.job_id = j.job_id and l.phase = 'offered';

comment on table job_move is 'The moves of jobs that their rows, leases and attempts do not tell: append only.';
