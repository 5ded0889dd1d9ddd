-- name: reserve_ids
-- Take n ids that follow each other; returns the first.
select reserve_job_ids($1);

-- name: lock
-- The facts of jobs, the rows locked in the order of their ids.
select job_id, state, epoch, event_seq, attempts, max_attempts, unstarted, stop_requested, tq_id, user_priority,
       owner, owner_group, vo, site, pilot_id
from job where job_id = any ($1::bigint[]) order by job_id for update;

-- name: read
-- The same without locks, for who only looks.
select job_id, state, epoch, event_seq, attempts, max_attempts, unstarted, stop_requested, tq_id, user_priority,
       owner, owner_group, vo, site, pilot_id
from job where job_id = any ($1::bigint[]);

-- name: leases
-- The leases of locked jobs: a statement of its own, since one that waited for a lock has the leases of before.
select job_id, epoch, pilot_id, phase, expires_at, coalesce(counted, '{}') as counted from lease where job_id = any ($1::bigint[]);

-- name: move
-- Move locked jobs to where their steps lead; attempts that nobody says are as many as before.
update job j
set state = m.state, reason = m.reason, event_seq = m.event_seq, stop_requested = coalesce(m.stop_requested, ''),
    attempts = coalesce(m.attempts, j.attempts), unstarted = coalesce(m.unstarted, j.unstarted),
    site = case when m.state not in ('Waiting', 'Held') then j.site end,
    pilot_id = case when m.state not in ('Waiting', 'Held') then j.pilot_id end, changed_at = now()
from unnest($1::bigint[], $2::text[], $3::text[], $4::integer[], $5::text[], $6::smallint[], $7::smallint[])
    as m(job_id, state, reason, event_seq, stop_requested, attempts, unstarted)
where j.job_id = m.job_id;

-- name: note
-- Write what the rows of jobs, leases and attempts do not tell of their history.
insert into job_move (job_id, seq, before, event, state, epoch, reason, text, source)
select n.job_id, n.seq, n.before, n.event, n.state, n.epoch, n.reason, n.text, coalesce(n.source, $10)
from unnest($1::bigint[], $2::integer[], $3::text[], $4::text[], $5::text[], $6::integer[], $7::text[], $8::text[], $9::text[])
    as n(job_id, seq, before, event, state, epoch, reason, text, source);

-- name: large_offers
-- The offers of these jobs that still stand and may be too large for a message: their descriptions and parameters are over a limit.
select l.job_id, l.epoch, j.event_seq, j.owner, j.owner_group, j.vo, j.array_index, j.parameters, l.pilot_id, l.request_id, j.site,
       d.body as description
from lease l join job j using (job_id) join description d using (description_id)
where l.job_id = any ($1::bigint[]) and l.phase = 'offered'
  and octet_length(d.body::text) + coalesce(octet_length(j.parameters::text), 0) > $2;

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

-- name: not_busy
-- Of these jobs those that wait and that no other transaction has its hands on.
select job_id from job where job_id = any ($1::bigint[]) and state = 'Waiting' order by job_id for update skip locked;

-- name: claim
-- Give waiting jobs to pilots: state and lease, which tell the match; a job that no longer waits, or waits elsewhere, is not returned. The
-- attempt counts from now on: what is withdrawn is given back. Nothing is given where limits came that the caller does not know.
-- From now on the transaction waits for nobody's lock for long.
with known as materialized (
    select limits_known($7) as limits
), claimed as (
    update job j
    set state = 'Matched', epoch = j.epoch + 1, event_seq = j.event_seq + 1, attempts = j.attempts + 1, reason = 'OFFERED',
        site = a.site, pilot_id = a.pilot_id, changed_at = now()
    from (
        select job_id, pilot_id, request_id, coalesce(site, '') as site, coalesce(ce, '') as ce, tq_id
        from unnest($1::bigint[], string_to_array($2, E'\x1f'), string_to_array($3, E'\x1f'), string_to_array($4, E'\x1f'),
                    string_to_array($5, E'\x1f'), $8::bigint[]) as u(job_id, pilot_id, request_id, site, ce, tq_id)
        cross join (select set_config('lock_timeout', '100ms', true)) as brief
    ) a
    where j.job_id = a.job_id and j.tq_id = a.tq_id and j.state = 'Waiting' and (select limits from known)
    returning j.job_id, j.epoch, j.event_seq, j.owner, j.owner_group, j.vo, j.description_id, j.array_index,
              j.parameters, a.pilot_id, a.request_id, a.site, a.ce
), leased as (
    insert into lease (job_id, epoch, seq, pilot_id, request_id, site, ce, phase, expires_at)
    select job_id, epoch, event_seq, pilot_id, request_id, site, ce, 'offered', now() + make_interval(secs => $6)
    from claimed
)
select c.job_id, c.epoch, c.event_seq, c.owner, c.owner_group, c.vo, c.array_index, c.parameters, d.body as description, k.limits
from known k left join (claimed c join description d using (description_id)) on true;

-- name: offered
-- The offers that requests were given before and that still stand.
select l.job_id, l.epoch, j.event_seq, j.owner, j.owner_group, j.vo, j.array_index, j.parameters, l.pilot_id, l.request_id, j.site,
       d.body as description
from lease l join job j using (job_id) join description d using (description_id)
where l.request_id = any ($1::text[]) and l.phase = 'offered' and l.expires_at > now();

-- name: waiting
-- Every waiting job with its queue and user priority, in order of queue and id: what a matcher loads at its start.
select tq_id, user_priority, array_agg(job_id order by job_id) as job_ids
from job where state = 'Waiting' group by tq_id, user_priority;

-- name: waiting_in
-- The same of some queues.
select tq_id, user_priority, array_agg(job_id order by job_id) as job_ids
from job where state = 'Waiting' and tq_id = any ($1::bigint[]) group by tq_id, user_priority;

-- name: count_waiting
-- How many jobs wait in each task queue.
select tq_id, jobs from waiting;
