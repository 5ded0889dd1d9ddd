-- name: reserve_ids
-- Take n ids that follow each other; returns the first.
select reserve_job_ids($1);

-- name: lock
-- The facts of jobs, the rows locked in the order of their ids.
select job_id, state, epoch, event_seq, attempts, max_attempts, unstarted, stop_requested, tq_id, user_priority,
       owner, owner_group, vo, site, pilot_id, brokered
from job where job_id = any ($1::bigint[]) order by job_id for update;

-- name: lock_held
-- The same of those jobs alone that these pilots hold. What pilots say of others' jobs locks nothing.
select job_id, state, epoch, event_seq, attempts, max_attempts, unstarted, stop_requested, tq_id, user_priority,
       owner, owner_group, vo, site, pilot_id, brokered
from job j where job_id = any ($1::bigint[])
    and exists (select from lease l where l.job_id = j.job_id and l.pilot_id = any ($2::text[])) order by job_id for update of j;

-- name: read
-- The same without locks, for who only looks.
select job_id, state, epoch, event_seq, attempts, max_attempts, unstarted, stop_requested, tq_id, user_priority,
       owner, owner_group, vo, site, pilot_id, brokered
from job where job_id = any ($1::bigint[]);

-- name: leases
-- The leases of locked jobs: a statement of its own, since one that waited for a lock has the leases of before.
select job_id, epoch, pilot_id, phase, expires_at, coalesce(counted, '{}') as counted, granted_at
from lease where job_id = any ($1::bigint[]);

-- name: move
-- Move locked jobs to where their steps lead; attempts that nobody says are as many as before.
update job j
set state = m.state, reason = m.reason, event_seq = m.event_seq, stop_requested = coalesce(m.stop_requested, ''),
    attempts = coalesce(m.attempts, j.attempts), unstarted = coalesce(m.unstarted, j.unstarted),
    site = case when m.state not in ('Waiting', 'Held', 'Checking') then j.site end,
    pilot_id = case when m.state not in ('Waiting', 'Held', 'Checking') then j.pilot_id end, changed_at = now()
from unnest($1::bigint[], $2::text[], $3::text[], $4::integer[], $5::text[], $6::smallint[], $7::smallint[])
    as m(job_id, state, reason, event_seq, stop_requested, attempts, unstarted)
where j.job_id = m.job_id;

-- name: note
-- Write what the rows of jobs, leases and attempts do not tell of their history.
insert into job_move (job_id, seq, before, event, state, epoch, reason, text, source)
select n.job_id, n.seq, n.before, n.event, n.state, n.epoch, n.reason, n.text, coalesce(n.source, $10)
from unnest($1::bigint[], $2::integer[], $3::text[], $4::text[], $5::text[], $6::integer[], $7::text[], $8::text[], $9::text[])
    as n(job_id, seq, before, event, state, epoch, reason, text, source);

-- name: ask_stop
-- Remember that the pilots of these jobs were asked to stop them, by whom, and why.
with asked as (
    update job set stop_requested = $2 where job_id = any ($1::bigint[]) returning job_id
)
insert into stop_order (job_id, source, reason) select job_id, $3, $4 from asked
on conflict (job_id) do update set source = excluded.source, reason = excluded.reason;

-- name: stop_orders
-- Who asked for these jobs to be stopped, and why.
select job_id, source, reason from stop_order where job_id = any ($1::bigint[]);

-- name: forget_stops
-- These jobs have moved on.
delete from stop_order where job_id = any ($1::bigint[]);

-- name: waiting
-- Every waiting job with its queue and user priority, in order of queue and id: what a matcher loads at its start.
select tq_id, user_priority, array_agg(job_id order by job_id) as job_ids
from job where state = 'Waiting' group by tq_id, user_priority;

-- name: waiting_in
-- The same of some queues, of 4,096 ids at most in a row.
select tq_id, user_priority, array_agg(job_id order by job_id) as job_ids
from job where state = 'Waiting' and tq_id = any ($1::bigint[]) group by tq_id, user_priority, job_id >> 12;

-- name: waiting_among
-- The same of some jobs.
select tq_id, user_priority, array_agg(job_id order by job_id) as job_ids
from job where job_id = any ($1::bigint[]) and state = 'Waiting' group by tq_id, user_priority;

-- name: count_waiting
-- How many jobs wait in each task queue.
select tq_id, jobs from waiting;
