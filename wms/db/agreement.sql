-- name: offer
-- Store offers that are new; a second one of an id changes nothing.
insert into agreement (agreement_id, job_id, vo, owner, "group", site, ce, cpus, duration_seconds, earliest_start, latest_start,
    flexible, expires_in_seconds, expires_at)
select o.agreement_id, o.job_id, o.vo, o.owner, o."group", o.site, o.ce, o.cpus, o.duration_seconds, o.earliest_start,
    o.latest_start, o.flexible, o.expires_in_seconds, now() + make_interval(secs => o.expires_in_seconds)
from unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::integer[],
            $9::double precision[], $10::timestamptz[], $11::timestamptz[], $12::boolean[], $13::double precision[])
    as o(agreement_id, job_id, vo, owner, "group", site, ce, cpus, duration_seconds, earliest_start, latest_start, flexible,
         expires_in_seconds)
on conflict (agreement_id) do nothing
returning agreement_id;

-- name: of_others
-- Those of these offers whose job is not of that owner in that group of that VO.
select o.agreement_id
from unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::text[]) as o(agreement_id, job_id, vo, owner, "group")
where not exists (select 1 from job j where j.job_id = o.job_id and j.vo = o.vo and j.owner = o.owner and j.owner_group = o."group");

-- name: lock
-- Agreements, locked in the order of their ids.
select * from agreement where agreement_id = any ($1::text[]) order by agreement_id for update;

-- name: read
-- Agreements by their ids.
select * from agreement where agreement_id = any ($1::text[]) order by agreement_id;

-- name: move
-- Store the new states of locked agreements.
update agreement a
set state = m.state, code = m.code, text = m.text, start_at = coalesce(m.start_at, a.start_at),
    ends_at = coalesce(m.ends_at, a.ends_at), reservation = coalesce(m.reservation, a.reservation),
    expires_at = coalesce(m.expires_at, a.expires_at), changed_at = now()
from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::timestamptz[], $6::timestamptz[], $7::text[], $8::timestamptz[])
    as m(agreement_id, state, code, text, start_at, ends_at, reservation, expires_at)
where a.agreement_id = m.agreement_id
returning a.*;

-- name: requested
-- Undecided offers for one element. Owners take turns: the oldest offer of each comes before the second of any.
with recursive owners as (
    (select owner from agreement where site = $1 and ce = $2 and state = 'Requested' order by owner limit 1)
    union all
    select (
        select a.owner from agreement a where a.site = $1 and a.ce = $2 and a.state = 'Requested' and a.owner > o.owner
        order by a.owner limit 1
    ) from owners o where o.owner is not null
), turns as (
    select f.agreement_id, f.created_at, row_number() over (partition by o.owner order by f.created_at, f.agreement_id) as turn
    from owners o cross join lateral (
        select agreement_id, created_at from agreement
        where site = $1 and ce = $2 and owner = o.owner and state = 'Requested' order by created_at, agreement_id limit $3
    ) f
)
select a.* from turns t join agreement a using (agreement_id) order by t.turn, t.created_at, t.agreement_id limit $3;

-- name: granted
-- Everything that is reserved at one element.
select * from agreement where site = $1 and ce = $2 and state in ('Temporary', 'Confirmed');

-- name: askers
-- Some owners of offers for an element that are alive, or were made of late.
select owner from agreement where site = $1 and ce = $2 and state in ('Requested', 'Temporary', 'Confirmed')
union
select owner from agreement where site = $1 and ce = $2 and created_at > now() - make_interval(secs => $3)
limit $4;

-- name: reserved
-- How much each user of each VO has reserved at a site.
select vo, owner, count(*) as agreements, sum(cpus) as cpus, sum(cpus * duration_seconds) as cpu_seconds
from agreement where site = $1 and state in ('Temporary', 'Confirmed') group by vo, owner;

-- name: intend
-- Store that decisions begin, and before a batch system is asked, that it may hold reservations for these.
update agreement a set is_held = a.is_held or $3, reservation = i.reservation, tries = tries + 1, changed_at = now()
from unnest($1::text[], $2::text[]) as i(agreement_id, reservation)
where a.agreement_id = i.agreement_id and a.state = 'Requested';

-- name: hand_over
-- Give agreements to the jobs that run in them, of the same owner, group and VO.
update agreement a set job_id = j.job_id, changed_at = now()
from unnest($1::text[], $2::bigint[]) as h(agreement_id, job_id) join job j using (job_id)
where a.agreement_id = h.agreement_id and (a.owner, a."group", a.vo) = (j.owner, j.owner_group, j.vo);

-- name: in_use
-- Those of these agreements in which their jobs have started.
select a.agreement_id from agreement a
where a.agreement_id = any ($1::text[]) and exists (
    select from placement p where p.job_id = a.job_id and p.agreement_id = a.agreement_id and p.state = 'Started'
);

-- name: overdue
-- Living agreements of a site that may be over by now, locked; whether their jobs are.
select a.*, coalesce(j.state in ('Done', 'Failed', 'Killed', 'Deleted'), false) as job_is_over
from agreement a left join job j using (job_id)
where a.site = $1 and a.state in ('Requested', 'Temporary', 'Confirmed')
    and case a.state when 'Confirmed' then a.ends_at <= now() or j.state in ('Done', 'Failed', 'Killed', 'Deleted')
            or (a.used_at is null and a.start_at + make_interval(secs => $2) <= now())
        else a.expires_at <= now() end
order by a.agreement_id limit $3 for update of a skip locked;

-- name: use
-- Note that confirmed reservations of a site are used: their jobs are at a pilot, or the batch system says so.
update agreement a set used_at = now()
where a.site = $1 and a.state = 'Confirmed' and a.used_at is null and a.start_at <= now()
    and (a.reservation = any ($2::text[]) or exists (select 1 from lease l where l.job_id = a.job_id and l.phase = 'accepted'));

-- name: releasable
-- What the batch system of an element may still hold of agreements that are over.
select agreement_id, reservation from agreement
where site = $1 and ce = $2 and is_held and state not in ('Requested', 'Temporary', 'Confirmed') order by changed_at limit $3;

-- name: released
-- The batch system holds nothing more for these.
update agreement set is_held = false where agreement_id = any ($1::text[]) and state not in ('Requested', 'Temporary', 'Confirmed');

-- name: living
-- The living agreements of an element that its batch system may hold reservations for.
select agreement_id, reservation, state from agreement
where site = $1 and ce = $2 and is_held and state in ('Requested', 'Temporary', 'Confirmed');

-- name: list
-- Agreements of a scope that meet the conditions, the newest first, after a time and an id; null stands for all.
select * from agreement
where ($1::text is null or owner = $1) and ($2::text is null or "group" = $2) and ($3::text is null or vo = $3)
    and state = any ($4::text[]) and ($5::bigint is null or job_id = $5) and ($6::text is null or owner = $6)
    and ($7::text is null or site = $7) and ($8::text is null or ce = $8)
    and ($9::timestamptz is null or (created_at, agreement_id) < ($9, $10::text))
order by created_at desc, agreement_id desc limit $11;

-- name: tell
-- Say that a site decides on offers for these elements, with their CPUs and the bounds of offers.
insert into agreement_element as e (site, ce, cpus, template, told_until)
select $1, t.ce, t.cpus, t.template::jsonb, now() + make_interval(secs => $5)
from unnest($2::text[], $3::integer[], $4::text[]) as t(ce, cpus, template)
on conflict (site, ce) do update set cpus = excluded.cpus, template = excluded.template,
    told_until = greatest(e.told_until, excluded.told_until);

-- name: withdraw
-- Say that a site decides on no offers for an element for now.
update agreement_element set told_until = least(told_until, now()) where site = $1 and ce = $2;

-- name: reservable
-- The elements whose sites decide on offers now.
select site, ce, cpus, template::text as template from agreement_element where told_until > now();

-- name: take_turn
-- Take the turn to decide on the offers for one element, if it is free or one's own.
update agreement_element set holder = $3, held_until = now() + make_interval(secs => $4), turns = turns + 1
where site = $1 and ce = $2 and (holder = $3 or held_until < now())
returning turns;

-- name: keep_turn
-- Lock one's turn until the end of the transaction, if it is still one's own.
select 1 from agreement_element where site = $1 and ce = $2 and holder = $3 for update;

-- name: forget
-- Forget agreements that were over long ago, and of which nothing is held.
delete from agreement where agreement_id in (
    select agreement_id from agreement
    where state not in ('Requested', 'Temporary', 'Confirmed') and not is_held and changed_at < now() - make_interval(secs => $1)
    order by changed_at limit $2);
