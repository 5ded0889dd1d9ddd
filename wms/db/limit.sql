-- name: read
-- The limits in force: those set at run time, else those of the file. Lifted limits are included and marked by a null `most`.
select distinct on (kind, site, ce, attribute, value) kind, site, ce, attribute, value, source, most, per_second, said_by,
       said_at
from limit_rule order by kind, site, ce, attribute, value, source desc;

-- name: set
-- Set a limit at run time, or lift it with a null `most`.
insert into limit_rule (source, kind, site, ce, attribute, value, most, per_second, said_by)
values ('set', $1, $2, $3, $4, $5, $6, $7, $8)
on conflict (kind, site, ce, attribute, value, source) do update
set most = excluded.most, per_second = excluded.per_second, said_by = excluded.said_by, said_at = now();

-- name: reset
-- Delete what was set at run time, so that the file's limit is in force.
delete from limit_rule
where source = 'set' and kind = $1 and site = $2 and ce = $3 and attribute = $4 and value = $5;

-- name: drop_file
-- Delete stored limits of the file that it no longer contains, or contains with other values.
delete from limit_rule l
where l.source = 'file' and not exists (
    select from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::integer[], $7::double precision[])
        as f(kind, site, ce, attribute, value, most, per_second)
    where (f.kind, f.site, f.ce, f.attribute, f.value, f.most) = (l.kind, l.site, l.ce, l.attribute, l.value, l.most)
      and f.per_second is not distinct from l.per_second
);

-- name: write_file
-- Store the limits of the file.
insert into limit_rule (source, kind, site, ce, attribute, value, most, per_second)
select 'file', kind, site, ce, attribute, value, most, per_second
from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::integer[], $7::double precision[])
    as f(kind, site, ce, attribute, value, most, per_second)
on conflict (kind, site, ce, attribute, value, source) do nothing;

-- name: make
-- Make missing counters.
insert into limit_counter (site, ce, attribute, value)
select k.site, k.ce, k.attribute, k.value
from unnest($1::text[], $2::text[], $3::text[], $4::text[]) as k(site, ce, attribute, value)
order by k.site, k.ce, k.attribute, k.value
on conflict (site, ce, attribute, value) do nothing;

-- name: lock
-- Lock the counters of these keys in the order of their ids; the time is read once the locks are held. `limits_known` comes first: it
-- takes the lock that a transaction with new limits takes too, before that locks any counter.
with held as materialized (
    select c.*
    from limit_counter c
    join unnest($1::text[], $2::text[], $3::text[], $4::text[]) as k(site, ce, attribute, value)
        using (site, ce, attribute, value)
    where (select limits_known(0)) is not null
    order by c.counter_id for update of c
)
select counter_id, site, ce, attribute, value, running, tokens, refilled_at, matched, sent, clock_timestamp() as at,
       case when allowed_until <= clock_timestamp() then 0 else allowed end as allowed
from held;

-- name: lock_free
-- The same without waiting, for callers that already hold counters: counters locked by others are left out.
with held as materialized (
    select c.*
    from limit_counter c
    join unnest($1::text[], $2::text[], $3::text[], $4::text[]) as k(site, ce, attribute, value)
        using (site, ce, attribute, value)
    where (select limits_known(0)) is not null
    order by c.counter_id for update of c skip locked
)
select counter_id, site, ce, attribute, value, running, tokens, refilled_at, matched, sent, clock_timestamp() as at,
       case when allowed_until <= clock_timestamp() then 0 else allowed end as allowed
from held;

-- name: settle
-- Count claims in the locked counters, and store the ids of the counters in the leases.
with counted as (
    update limit_counter c
    set running = c.running + s.claimed, matched = case when c.allowed is null then 0 else c.matched + s.claimed end,
        tokens = s.tokens, refilled_at = s.at, awaited = c.awaited or s.awaited
    from unnest($1::bigint[], $2::integer[], $3::double precision[], $4::timestamptz[], $5::boolean[])
        as s(counter_id, claimed, tokens, at, awaited)
    where c.counter_id = s.counter_id
)
update lease l set counted = string_to_array(t.counted, ',')::bigint[]
from unnest($6::bigint[], $7::text[]) as t(job_id, counted)
where l.job_id = t.job_id;

-- name: give_back
-- Reduce the counters of ended leases. Returns counters that have room now and that a matcher awaits.
with held as materialized (
    -- If the ad admits no more jobs, the end of a lease makes no room; only the next ad does.
    select c.counter_id, c.awaited, g.ended,
           c.allowed is null or c.matched < c.allowed and c.allowed_until > clock_timestamp() as open
    from limit_counter c join unnest($1::bigint[], $2::integer[]) as g(counter_id, ended) using (counter_id)
    order by c.counter_id for update of c
), fallen as (
    update limit_counter c set running = c.running - h.ended, awaited = h.awaited and not h.open
    from held h where c.counter_id = h.counter_id
    returning c.site, c.ce, c.attribute, c.value, h.awaited and h.open as opened
)
select site, ce, attribute, value from fallen where opened;

-- name: counts
-- The counts of these keys.
select c.site, c.ce, c.attribute, c.value, c.running, c.tokens, c.matched, c.sent,
       case when c.allowed_until <= clock_timestamp() then 0 else c.allowed end as allowed,
       extract(epoch from clock_timestamp() - c.refilled_at)::double precision as idle_seconds
from limit_counter c
join unnest($1::text[], $2::text[], $3::text[], $4::text[]) as k(site, ce, attribute, value)
    using (site, ce, attribute, value);

-- name: all_counts
-- The counts of all keys that count anything.
select site, ce, attribute, value, running, tokens, matched, sent,
       case when allowed_until <= clock_timestamp() then 0 else allowed end as allowed,
       extract(epoch from clock_timestamp() - refilled_at)::double precision as idle_seconds
from limit_counter where running > 0 or refilled_at is not null or allowed is not null order by site, ce, attribute, value limit $1;

-- name: leased
-- Leases in the order of their jobs, with the fields that limits depend on and the ids of their counters.
select l.job_id, l.epoch, l.site, l.ce, j.tq_id, coalesce(l.counted, '{}') as counted
from lease l join job j using (job_id)
where l.job_id > $1 order by l.job_id limit $2;

-- name: lock_jobs
-- Lock these jobs, except those that another transaction has locked.
select job_id from job where job_id = any ($1::bigint[]) order by job_id for update skip locked;

-- name: counters
-- The ids of these keys' counters.
select c.counter_id, c.site, c.ce, c.attribute, c.value
from limit_counter c
join unnest($1::text[], $2::text[], $3::text[], $4::text[]) as k(site, ce, attribute, value)
    using (site, ce, attribute, value);

-- name: count_in
-- Add leases of locked jobs to further counters; leases that ended meanwhile are skipped.
with told as (
    update lease l set counted = coalesce(l.counted, '{}') || string_to_array(t.added, ',')::bigint[]
    from unnest($1::bigint[], $2::integer[], $3::text[]) as t(job_id, epoch, added)
    where l.job_id = t.job_id and l.epoch = t.epoch
      and not coalesce(l.counted, '{}') && string_to_array(t.added, ',')::bigint[]
    returning string_to_array(t.added, ',')::bigint[] as added
), sums as (
    select counter_id, count(*) as leases from told cross join lateral unnest(told.added) as counter_id group by counter_id
), held as materialized (
    select c.counter_id, s.leases from limit_counter c join sums s using (counter_id)
    order by c.counter_id for update of c
)
update limit_counter c set running = c.running + h.leases from held h where c.counter_id = h.counter_id;

-- name: begins
-- Whether any of these elements has not stated a limit so far.
select exists (
    select from unnest($1::text[], $2::text[]) as k(site, ce)
    left join limit_counter c on c.site = k.site and c.ce = k.ce and c.attribute = 'any' and c.value = ''
    where c.allowed is null
);

-- name: begin
-- Wait for all transactions that claimed jobs without knowledge of limits, and make later ones read the limits first. The first
-- `nextval` of a sequence returns its initial value, so 1 is added: otherwise the first change would go unnoticed.
select setval('limit_generation', nextval('limit_generation') + 1) from (select pg_advisory_xact_lock(7107) offset 0) as alone;

-- name: hold_ads
-- Lock the counters of these elements' ads in the order of ids. A later statement then sees all pilots that were stored under these
-- locks.
select c.counter_id from limit_counter c
join unnest($1::text[], $2::text[]) as a(site, ce) on c.site = a.site and c.ce = a.ce
where c.attribute = 'any' and c.value = '' order by c.counter_id for update of c;

-- name: advertise
-- Store the room that each ad leaves until the next one, and count from zero. Returns the elements that a matcher awaits. A source
-- counts a pilot as a job once it sees it. Pilots that it cannot have seen count as sent since. A pilot that it counts and that has no
-- job may still get one, which adds nothing to its count. Where it counts pilots, it does not see that a pilot has several jobs. Pilots
-- that it should see and does not count are subtracted from the room.
with a as (
    select a.*, 'any' as attribute, '' as value
    from unnest($1::text[], $2::text[], $3::integer[], $4::double precision[], $5::timestamptz[], $6::integer[], $7::boolean[])
        as a(site, ce, allowed, lifetime, observed_at, current, sees_jobs)
), there as (
    select a.site, a.ce, a.sees_jobs, a.current, coalesce(l.jobs, 0) as jobs,
           p.state = 'Submitting' or p.submitted_at > coalesce(a.observed_at, now()) as unseen
    from a join pilot p on p.site = a.site and p.ce = a.ce and p.ended_at is null
    left join (select pilot_id, count(*) as jobs from lease group by pilot_id) l using (pilot_id)
    where a.allowed is not null
), known as (
    select site, ce, count(*) filter (where unseen) as unseen, count(*) filter (where not unseen and jobs = 0) as idle,
           greatest(0, count(*) filter (where not unseen) - min(current))
           + case when bool_or(sees_jobs) then 0 else coalesce(sum(jobs - 1) filter (where jobs > 1), 0) end as uncounted
    from there group by site, ce
), held as materialized (
    select c.counter_id, c.awaited, a.lifetime, coalesce(k.unseen, 0) as unseen,
           case when a.allowed is not null then coalesce(k.idle, 0) else 0 end as idle,
           greatest(0, a.allowed - coalesce(k.uncounted, 0)) + coalesce(k.idle, 0) as allowed, a.allowed is null as unlimited
    from limit_counter c join a using (site, ce, attribute, value) left join known k using (site, ce)
    where a.allowed is not null or c.allowed is not null
    order by c.counter_id for update of c
), begun as (
    update limit_counter c
    set allowed = case when h.unlimited then null else h.allowed end, matched = 0, sent = least(h.allowed, h.idle + h.unseen),
        idle = h.idle, unseen = h.unseen, awaited = false, advertised_at = clock_timestamp(),
        allowed_until = clock_timestamp() + make_interval(secs => h.lifetime)
    from held h where c.counter_id = h.counter_id
    returning c.site, c.ce, h.awaited
)
select site, ce from begun where awaited;

-- name: end_ads
-- Close elements whose ads ended: they admit no job until their next ads.
update limit_counter c set allowed_until = least(c.allowed_until, clock_timestamp())
from unnest($1::text[], $2::text[]) as w(site, ce)
where c.site = w.site and c.ce = w.ce and c.attribute = 'any' and c.value = '' and c.allowed is not null;

-- name: generation
-- The generation of the set of elements that state limits.
select last_value from limit_generation;

-- name: advertising
-- The elements whose ads state a limit.
select site, ce from limit_counter where allowed is not null;

-- name: hold
-- Keep elements from beginning to state a limit until this transaction ends.
select limits_known(0);

-- name: pilots_left
-- The number of further pilots that each element admits whose ad states a limit.
select site, ce, case when allowed_until <= clock_timestamp() then 0 else greatest(0, allowed - sent) end as left
from limit_counter where allowed is not null;

-- name: count_pilots
-- Count pilots that are about to be sent, up to the number that the ads admit. Returns this number for elements whose ads state a limit.
with held as materialized (
    select c.counter_id, c.site, c.ce,
           case when c.allowed_until <= clock_timestamp() then 0 else greatest(0, least(w.wanted, c.allowed - c.sent)) end as granted
    from limit_counter c join unnest($1::text[], $2::text[], $3::integer[]) as w(site, ce, wanted)
        on c.site = w.site and c.ce = w.ce and c.attribute = 'any' and c.value = ''
    where c.allowed is not null
    order by c.counter_id for update of c
), counted as (
    update limit_counter c set sent = c.sent + h.granted from held h where c.counter_id = h.counter_id and h.granted > 0
)
select site, ce, granted from held;
