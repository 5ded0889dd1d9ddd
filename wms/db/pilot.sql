-- name: seen
-- Store reports of pilots. A pilot that was only lost from sight is alive again.
update pilot p
set seen_at = now(), started_at = coalesce(p.started_at, now()), slots = least(s.slots, p.sent_slots), busy = s.busy,
    jobs_done = p.jobs_done + s.done,
    state = case when p.ended_at is not null and not s.back then p.state
                 when s.state = 'ended' then 'Done' when s.state = 'draining' then 'Draining' else 'Running' end,
    ended_at = case when s.state = 'ended' then coalesce(p.ended_at, now()) when not s.back then p.ended_at end,
    cause = case when not s.back then p.cause end,
    reason = case when s.reason = '' then p.reason else s.reason end,
    free_memory_mb = coalesce(s.free_memory_mb, p.free_memory_mb),
    refused_orders = greatest(s.refused_orders, p.refused_orders), token_until = coalesce(s.token_until, p.token_until),
    isolation = case when s.isolation = '' then p.isolation else s.isolation end,
    node = case when s.node = '' then p.node else s.node end
from (
    select u.*, coalesce(o.cause in ('NODE_LOST', 'PILOT_FORGOTTEN'), false) as back
    from unnest($1::text[], $2::text[], $3::integer[], $4::integer[], $5::integer[], $6::text[], $7::integer[],
                $8::integer[], $9::timestamptz[], $10::text[], $11::text[])
        as u(pilot_id, state, slots, busy, done, reason, free_memory_mb, refused_orders, token_until, isolation, node) join pilot o using (pilot_id)
) s
where p.pilot_id = s.pilot_id;

-- name: insert
-- Store pilots before they are sent, under names of our own: so they are found again after a crash.
insert into pilot (pilot_id, site, ce, vo, dispatcher, slots, sent_slots, reason, lifetime_seconds, asks, owner_group, owner, order_id, job_id,
    link, resource, token_until)
select p.pilot_id, p.site, p.ce, p.vo, p.dispatcher, p.slots, p.slots, p.reason, p.lifetime, p.asks,
       p.owner_group, p.owner, p.order_id, p.job_id, p.link, p.resource,
       case p.link when 'kafka' then now() + make_interval(secs => $16) end
from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::integer[], $7::text[], $8::double precision[],
            $9::text[], $10::text[], $11::text[], $12::bigint[], $13::bigint[], $14::text[], $15::text[])
    as p(pilot_id, site, ce, vo, dispatcher, slots, reason, lifetime, asks, owner_group, owner, order_id, job_id, link, resource);

-- name: living
-- The slots and ended jobs of live pilots; offers and leases are given as 0.
select pilot_id, coalesce(sent_slots, slots) as slots, jobs_done as done, 0 as offered, 0 as leases, false as ended
from pilot where ended_at is null or cause in ('NODE_LOST', 'PILOT_FORGOTTEN') and ended_at > now() - interval '1 day';

-- name: standings
-- The allowances of these pilots. A pilot that was only lost from sight does not count as ended.
select p.pilot_id, coalesce(p.sent_slots, p.slots) as slots, p.jobs_done as done,
    coalesce(l.offered, 0) as offered, coalesce(l.leases, 0) as leases,
    p.ended_at is not null and coalesce(p.cause not in ('NODE_LOST', 'PILOT_FORGOTTEN'), true) as ended
from pilot p
left join (
    select pilot_id, count(*) filter (where phase = 'offered') as offered, count(*) as leases
    from lease where pilot_id = any ($1::text[]) and (phase = 'accepted' or expires_at > now()) group by pilot_id
) l using (pilot_id)
where p.pilot_id = any ($1::text[]);

-- name: tokens_due
-- Live pilots whose tokens expire soon: running ones first, then those that were sent no token for longest.
select pilot_id, site, ce, vo, owner_group, owner, job_id from pilot
where ended_at is null and token_until < now() + make_interval(secs => $1)
    and (renewed_at is null or renewed_at < now() - make_interval(secs => $2))
order by state in ('Running', 'Draining') desc, renewed_at nulls first, token_until limit $3;

-- name: tokens_sent
-- Store that these pilots were sent tokens now.
update pilot set renewed_at = now() where pilot_id = any ($1::text[]);

-- name: may_plan
-- Take the lock for planning pilots until the transaction ends; false if another transaction holds it.
select pg_try_advisory_xact_lock(7102);

-- name: hurry_leases
-- Shorten the leases of dead pilots, so that their jobs are given to others soon.
update lease set expires_at = least(expires_at, now() + make_interval(secs => $2)) where pilot_id = any ($1::text[]);

-- name: update
-- Store the states of pilots as reported by their dispatcher. A pilot that has ended stays ended.
update pilot p
set state = case when p.state in ('Running', 'Draining') and u.state in ('Submitted', 'Waiting') then p.state else u.state end,
    reference = coalesce(u.reference, p.reference),
    reason = case when p.cancelled_at is not null and p.seen_at is null and u.cause is not null then concat_ws(': ', 'we cancelled it', nullif(u.reason, ''))
        when u.reason = '' then p.reason else u.reason end,
    word = concat_ws(': ', u.state, nullif(u.reason, '')), word_at = now(), cause = u.cause,
    ended_at = case when u.state in ('Done', 'Failed', 'Aborted') then now() end
from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[]) as u(pilot_id, state, reference, reason, cause)
where p.pilot_id = u.pilot_id and p.ended_at is null;

-- name: cancelled
-- Store that these pilots are being cancelled.
update pilot set cancelled_at = now() where pilot_id = any ($1::text[]) and ended_at is null and cancelled_at is null;

-- name: supply
-- Live pilots that take any job, grouped by their offers. `lasts` is the number of the given times for which they still live long enough.
select site, ce, vo, owner_group, state, slots, busy, resource, asks, case when busy < slots then node else '' end as idle_node, free_memory_mb,
       case when started_at is null or lifetime_seconds is null then cardinality($1::double precision[])
            else width_bucket(lifetime_seconds - extract(epoch from now() - started_at)::double precision, $1) end as lasts,
       seen_at < now() - make_interval(secs => case when busy = 0 then $2::double precision else $3::double precision end)
           is true as silent,
       count(*) as pilots, count(*) filter (where busy > 0 or jobs_done > 0) as worked
from pilot where ended_at is null and job_id is null
group by site, ce, vo, owner_group, state, slots, busy, resource, asks, idle_node, free_memory_mb, lasts, silent
order by site, ce, vo, state, slots, busy, resource, asks, idle_node, free_memory_mb, lasts;

-- name: private
-- The number of live private pilots that take any of their jobs, by VO, group and owner.
select vo, owner_group, owner, count(*) as pilots from pilot where ended_at is null and job_id is null and owner_group <> ''
group by vo, owner_group, owner;

-- name: alive
-- Pilots that have not ended. Those that only stand for a job that was sent directly are followed with it.
select pilot_id, site, ce, vo, dispatcher, reference, state, slots, busy, submitted_at, seen_at, reason, cancelled_at is not null as cancelled,
    extract(epoch from now() - submitted_at)::float8 as age, extract(epoch from now() - seen_at)::float8 as silent,
    extract(epoch from now() - coalesce(seen_at, case when state = 'Running' then word_at end))::float8 as unheard
from pilot t where ended_at is null
  and (job_id is null or not exists (select from placement p where p.pilot_id = t.pilot_id and p.dispatch = 'direct'))
order by submitted_at;

-- name: unfetched
-- Pilots that ended a while ago and whose output was not fetched yet.
select pilot_id, site, ce, dispatcher, extract(epoch from now() - ended_at)::float8 as age,
    coalesce(cause in ('NODE_LOST', 'PILOT_FORGOTTEN'), false) as lost
from pilot
where ended_at between now() - make_interval(secs => $1) and now() - make_interval(secs => $2) and output is null
order by ended_at limit $3;

-- name: mark
-- This system's mark in the names of its pilots.
select mark from system_mark;

-- name: over
-- Pilots that elements list as alive but that have ended or are unknown, and that hold no lease.
select l.pilot_id, coalesce(p.site, '') as site, coalesce(p.ce, '') as ce,
       extract(epoch from now() - p.ended_at)::float8 as age
from unnest($1::text[]) as l(pilot_id) left join pilot p using (pilot_id)
where (p.pilot_id is null or p.ended_at is not null) and not exists (select from lease h where h.pilot_id = l.pilot_id)
order by l.pilot_id;

-- name: keep_outputs
-- Store the outputs of pilots.
update pilot p set output = o.output from unnest($1::text[], $2::text[]) as o(pilot_id, output) where p.pilot_id = o.pilot_id;

-- name: all
-- Pilots for a list, live ones first.
select pilot_id, site, ce, vo, owner_group, owner, dispatcher, state, slots, busy, jobs_done, submitted_at, started_at, seen_at,
    ended_at, reason, link
from pilot where ($3 or ended_at is null) and ($4::text is null or vo = $4)
order by ended_at is not null, submitted_at desc, pilot_id offset $1 limit $2;

-- name: fates
-- The known facts about these pilots: their last messages, their elements' last reports, and their ends.
select pilot_id, site, ce, dispatcher, state, ended_at is not null as ended, seen_at, word, word_at, cause
from pilot where pilot_id = any ($1::text[]);

-- name: of_job
-- The pilots to which a job was given, in order, with their own and their elements' reports.
select pilot_id, site, ce, dispatcher, reference, state, submitted_at, started_at, seen_at, ended_at, reason, word, word_at, cause
from pilot where pilot_id in (select a.pilot_id from attempt a where a.job_id = $1) order by submitted_at, pilot_id;

-- name: one
-- All columns of a pilot, with its output.
select pilot_id, site, ce, vo, owner_group, owner, dispatcher, reference, state, slots, busy, jobs_done, submitted_at, started_at,
    seen_at, ended_at, reason, word, word_at, cause, output, refused_orders, link, isolation
from pilot where pilot_id = $1;

-- name: forget
-- Delete pilots that ended more than $1 seconds ago.
delete from pilot where pilot_id = any (array(
    select pilot_id from pilot where ended_at < now() - make_interval(secs => $1) order by ended_at limit $2
));

-- name: unbound
-- Live pilots that are bound to a job by no open placement, and hold no job: those of closed placements after a while, in which they
-- end by themselves.
select b.pilot_id, b.site, b.ce, b.dispatcher from pilot b
where b.job_id is not null and b.ended_at is null
  and not exists (select from placement p where p.pilot_id = b.pilot_id
                  and (p.state in ('Ordered', 'Sent', 'Started') or p.state = 'Ended' and p.changed_at > now() - make_interval(secs => $1)))
  and not exists (select from lease l where l.pilot_id = b.pilot_id)
order by b.pilot_id limit $2;
