-- name: seen
-- What pilots said of themselves.
update pilot p
set seen_at = now(), started_at = coalesce(p.started_at, now()), slots = s.slots, busy = s.busy,
    jobs_done = p.jobs_done + s.done,
    state = case when p.ended_at is not null then p.state
                 when s.state = 'ended' then 'Done' when s.state = 'draining' then 'Draining' else 'Running' end,
    ended_at = case when s.state = 'ended' then coalesce(p.ended_at, now()) else p.ended_at end,
    reason = case when s.reason = '' then p.reason else s.reason end
from unnest($1::text[], $2::text[], $3::integer[], $4::integer[], $5::integer[], $6::text[])
    as s(pilot_id, state, slots, busy, done, reason)
where p.pilot_id = s.pilot_id;

-- name: insert
-- Pilots that are about to be sent, under ids that we chose: a crash finds them again.
insert into pilot (pilot_id, site, ce, vo, dispatcher, slots, reason)
select p.pilot_id, p.site, p.ce, p.vo, p.dispatcher, p.slots, p.reason
from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::integer[], $7::text[])
    as p(pilot_id, site, ce, vo, dispatcher, slots, reason);

-- name: may_plan
-- Whether this transaction is the one that plans now.
select pg_try_advisory_xact_lock(7102);

-- name: hurry_leases
-- These pilots are dead: what they hold is given back soon, not at the end of its lease.
update lease set expires_at = least(expires_at, now() + make_interval(secs => $2)) where pilot_id = any ($1::text[]);

-- name: update
-- What the dispatcher says of pilots; one that has ended stays ended.
update pilot p
set state = case when p.state in ('Running', 'Draining') and u.state in ('Submitted', 'Waiting') then p.state else u.state end,
    reference = coalesce(u.reference, p.reference),
    reason = case when u.reason = '' then p.reason else u.reason end,
    ended_at = case when u.state in ('Done', 'Failed', 'Aborted') then now() end
from unnest($1::text[], $2::text[], $3::text[], $4::text[]) as u(pilot_id, state, reference, reason)
where p.pilot_id = u.pilot_id and p.ended_at is null;

-- name: alive
-- Pilots that have not ended.
select pilot_id, site, ce, vo, dispatcher, reference, state, slots, busy, submitted_at, seen_at, reason,
    extract(epoch from now() - submitted_at)::float8 as age
from pilot where ended_at is null order by submitted_at;

-- name: unfetched
-- Pilots that ended a while ago, and whose output was not asked for yet.
select pilot_id, site, ce, dispatcher from pilot
where ended_at between now() - make_interval(secs => $1) and now() - make_interval(secs => $2) and output is null
order by ended_at limit $3;

-- name: keep_outputs
-- What pilots printed at their ends.
update pilot p set output = o.output from unnest($1::text[], $2::text[]) as o(pilot_id, output) where p.pilot_id = o.pilot_id;

-- name: all
-- Pilots as a list shows them, alive ones first.
select pilot_id, site, ce, vo, dispatcher, state, slots, busy, jobs_done, submitted_at, started_at, seen_at, ended_at, reason
from pilot where $2 or ended_at is null
order by ended_at is not null, submitted_at desc limit $1;
