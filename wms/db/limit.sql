-- name: read
-- What holds: what was set, else what the file says; what was lifted is shown as such.
select distinct on (kind, site, ce, attribute, value) kind, site, ce, attribute, value, source, most, per_second, said_by,
       said_at
from limit_rule order by kind, site, ce, attribute, value, source desc;

-- name: set
-- Say a limit, or lift it.
insert into limit_rule (source, kind, site, ce, attribute, value, most, per_second, said_by)
values ('set', $1, $2, $3, $4, $5, $6, $7, $8)
on conflict (kind, site, ce, attribute, value, source) do update
set most = excluded.most, per_second = excluded.per_second, said_by = excluded.said_by, said_at = now();

-- name: reset
-- Let the file's word hold again.
delete from limit_rule
where source = 'set' and kind = $1 and site = $2 and ce = $3 and attribute = $4 and value = $5;

-- name: drop_file
-- Forget what the file no longer says, or says otherwise.
delete from limit_rule l
where l.source = 'file' and not exists (
    select from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::integer[], $7::double precision[])
        as f(kind, site, ce, attribute, value, most, per_second)
    where (f.kind, f.site, f.ce, f.attribute, f.value, f.most) = (l.kind, l.site, l.ce, l.attribute, l.value, l.most)
      and f.per_second is not distinct from l.per_second
);

-- name: write_file
-- Write down what the file says.
insert into limit_rule (source, kind, site, ce, attribute, value, most, per_second)
select 'file', kind, site, ce, attribute, value, most, per_second
from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::integer[], $7::double precision[])
    as f(kind, site, ce, attribute, value, most, per_second)
on conflict (kind, site, ce, attribute, value, source) do nothing;

-- name: make
-- Begin to count.
insert into limit_counter (site, ce, attribute, value)
select k.site, k.ce, k.attribute, k.value
from unnest($1::text[], $2::text[], $3::text[], $4::text[]) as k(site, ce, attribute, value)
order by k.site, k.ce, k.attribute, k.value
on conflict (site, ce, attribute, value) do nothing;

-- name: lock
-- The counters of these keys, locked in one order; each bucket's time is read once its lock is held. First the lock that who brings
-- a limit takes, who has no counter then.
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
-- The same of those that nobody else has locked: who holds some already waits for none.
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
-- Count what was claimed, on the locked counters and in the leases.
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
-- Leases have ended: their counters fall. Returns those that somebody was turned away from.
with held as materialized (
    -- Where the ad lets no more come an end makes no room: only the next ad does.
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
-- How far these keys are.
select c.site, c.ce, c.attribute, c.value, c.running, c.tokens, c.matched, c.sent,
       case when c.allowed_until <= clock_timestamp() then 0 else c.allowed end as allowed,
       extract(epoch from clock_timestamp() - c.refilled_at)::double precision as idle_seconds
from limit_counter c
join unnest($1::text[], $2::text[], $3::text[], $4::text[]) as k(site, ce, attribute, value)
    using (site, ce, attribute, value);

-- name: all_counts
-- How far all keys are that count anything.
select site, ce, attribute, value, running, tokens, matched, sent,
       case when allowed_until <= clock_timestamp() then 0 else allowed end as allowed,
       extract(epoch from clock_timestamp() - refilled_at)::double precision as idle_seconds
from limit_counter where running > 0 or refilled_at is not null or allowed is not null order by site, ce, attribute, value limit $1;

-- name: leased
-- Leases in the order of their jobs, with what limits look at and what they are counted by.
select l.job_id, l.epoch, l.site, l.ce, j.tq_id, coalesce(l.counted, '{}') as counted
from lease l join job j using (job_id)
where l.job_id > $1 order by l.job_id limit $2;

-- name: lock_jobs
-- Those of the jobs that nobody else has locked.
select job_id from job where job_id = any ($1::bigint[]) order by job_id for update skip locked;

-- name: counters
-- The numbers of these keys' counters.
select c.counter_id, c.site, c.ce, c.attribute, c.value
from limit_counter c
join unnest($1::text[], $2::text[], $3::text[], $4::text[]) as k(site, ce, attribute, value)
    using (site, ce, attribute, value);

-- name: count_in
-- Leases of locked jobs are counted by more counters from now on; those that ended meanwhile are not.
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
-- Whether any of these elements has stated no limit so far.
select exists (
    select from unnest($1::text[], $2::text[]) as k(site, ce)
    left join limit_counter c on c.site = k.site and c.ce = k.ce and c.attribute = 'any' and c.value = ''
    where c.allowed is null
);

-- name: begin
-- Wait until all who gave without knowing that there are to be limits are done, and have all others read them first. The first
-- number of a sequence is the one that it was made with: only the second is seen to differ.
select setval('limit_generation', nextval('limit_generation') + 1) from (select pg_advisory_xact_lock(7107) offset 0) as alone;

-- name: hold_ads
-- The counters of these elements' ads, locked in one order. What is read after it was written under these locks.
select c.counter_id from limit_counter c
join unnest($1::text[], $2::text[]) as a(site, ce) on c.site = a.site and c.ce = a.ce
where c.attribute = 'any' and c.value = '' order by c.counter_id for update of c;

-- name: advertise
-- Elements' ads: what each lets come until the next, counted from now. Returns those that were awaited.
-- A source counts a pilot as a job once it sees it. Those that it cannot have seen count as sent since. One that it counts and that has
-- no job may be given one: that brings no more there. Where it counts pilots, it does not see that one has several jobs; and what it
-- should see and does not count is there all the same.
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
-- Elements went away: nothing comes there any more until their next ads.
update limit_counter c set allowed_until = least(c.allowed_until, clock_timestamp())
from unnest($1::text[], $2::text[]) as w(site, ce)
where c.site = w.site and c.ce = w.ce and c.attribute = 'any' and c.value = '' and c.allowed is not null;

-- name: generation
-- How often elements have begun to state limits.
select last_value from limit_generation;

-- name: advertising
-- The elements whose ads state a limit.
select site, ce from limit_counter where allowed is not null;

-- name: hold
-- Nobody begins to state a limit before this transaction ends.
select limits_known(0);

-- name: pilots_left
-- How many pilots more may be sent to the elements whose ads state a limit.
select site, ce, case when allowed_until <= clock_timestamp() then 0 else greatest(0, allowed - sent) end as left
from limit_counter where allowed is not null;

-- name: count_pilots
-- Count pilots that are to be sent, as many as the ads let come. Returns how many, of elements whose ads state a limit.
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
