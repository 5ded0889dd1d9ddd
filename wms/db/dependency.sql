-- name: insert
-- Store jobs that wait for predecessors.
insert into dependency (jobs, predecessors, any_end, outputs_of, pending)
select d.jobs::int8multirange, d.predecessors::int8multirange, d.any_end::int8multirange, d.outputs_of::int8multirange,
       d.predecessors::int8multirange
from unnest($1::text[], $2::text[], $3::text[], $4::text[]) as d(jobs, predecessors, any_end, outputs_of);

-- name: page
-- The next dependencies, in the order in which they were made.
select dependency_id, jobs::text, predecessors::text, any_end::text, outputs_of::text, pending::text, failed
from dependency where dependency_id > $1 order by dependency_id limit $2;

-- name: lock
-- One dependency, locked; no row if it is gone or another transaction has it locked.
select dependency_id, jobs::text, predecessors::text, any_end::text, outputs_of::text, pending::text, failed
from dependency where dependency_id = $1 for update skip locked;

-- name: of_jobs
-- The dependencies of some of these jobs.
select dependency_id, jobs::text, predecessors::text, any_end::text, outputs_of::text, pending::text, failed
from dependency where jobs && $1::text::int8multirange order by dependency_id;

-- name: progress
-- The progress of predecessors: the first one that has not ended as required, and the first one that can no longer do so. Of
-- predecessors with rows only the first $4 are read; a block stands for all its jobs.
with given as (
    select g.number, g.pending::int8multirange as pending, g.any_end::int8multirange as any_end
    from unnest($1::bigint[], $2::text[], $3::text[]) as g(number, pending, any_end)
), parts as (
    select number, ids, false as is_any from given, unnest(pending - any_end) as ids
    union all
    select number, ids, true from given, unnest(pending * any_end) as ids
), seen as (
    select p.number, j.job_id, true as has_row, j.state in ('Failed', 'Killed', 'Deleted') as has_ended,
           j.state = 'Done' or (p.is_any and j.state in ('Failed', 'Killed', 'Deleted')) or (j.state = 'Deleted' and exists (
               select from job_event e where e.job_id = j.job_id and e.state = 'Done'
           )) as is_met
    from parts p cross join lateral (
        select job_id, state from job where job_id >= lower(p.ids) and job_id < upper(p.ids) order by job_id limit $4
    ) j
    union all
    select p.number, greatest(b.first, lower(p.ids)), false, b.state in ('Killed', 'Deleted'),
           p.is_any and b.state in ('Killed', 'Deleted')
    from parts p cross join lateral (
        select first, state from block where int8range(first, last, '[]') && p.ids order by first limit $4
    ) b
), numbered as (
    select s.*, row_number() over (partition by number, has_row order by job_id) as n from seen s
)
select g.number, min(s.job_id) filter (where not s.is_met) as unmet,
       min(s.job_id) filter (where s.has_ended and not s.is_met) as failed,
       max(s.job_id) filter (where s.has_row and s.n = $4) as looked_to
from given g left join numbered s on s.number = g.number and (s.n <= $4 or not s.has_row) group by g.number;

-- name: unmet
-- The first predecessors that have not ended as required, with their states; failed ones come first.
with parts as (
    select ids, false as is_any from unnest($1::text::int8multirange - $2::text::int8multirange) as ids
    union all
    select ids, true from unnest($1::text::int8multirange * $2::text::int8multirange) as ids
), seen as (
    select j.job_id, j.job_id as last, j.state, j.reason, r.is_any
    from parts r cross join lateral (
        select job_id, state, reason from job
        where job_id >= lower(r.ids) and job_id < upper(r.ids) and state <> 'Done' order by job_id limit $4
    ) j
    union all
    select greatest(b.first, lower(r.ids)), least(b.last, upper(r.ids) - 1), b.state, b.reason, r.is_any
    from parts r cross join lateral (
        select first, last, state, reason from block where int8range(first, last, '[]') && r.ids order by first limit $4
    ) b
)
select job_id, last, state, reason from seen
where not (is_any and state in ('Failed', 'Killed', 'Deleted'))
  and not (state = 'Deleted' and exists (select from job_event e where e.job_id = seen.job_id and e.state = 'Done'))
order by state in ('Failed', 'Killed', 'Deleted') desc, job_id limit $3;

-- name: states
-- The states of jobs, with rows and in blocks.
select job_id, state from job where job_id = any ($1::bigint[])
union all
select w.job_id, b.state from unnest($1::bigint[]) as w(job_id) join block b on int8range(b.first, b.last, '[]') @> w.job_id;

-- name: advance
-- Store the pending predecessors, and the failed one.
update dependency set pending = $2::text::int8multirange, failed = $3 where dependency_id = $1;

-- name: delete
-- Delete a dependency that no job waits for any more.
delete from dependency where dependency_id = $1;

-- name: let_go
-- Remove these jobs from dependencies that other jobs share.
update dependency set jobs = jobs - $1::text::int8multirange
where jobs && $1::text::int8multirange and not jobs <@ $1::text::int8multirange;

-- name: let_all_go
-- Delete dependencies whose jobs are all among these.
delete from dependency where jobs <@ $1::text::int8multirange;

-- name: forget_idle
-- Delete dependencies without Held jobs: the jobs were killed or deleted while they waited.
delete from dependency d
where d.dependency_id = any ($1::bigint[])
  and not exists (select from unnest(d.jobs) as r(ids) join job j on j.job_id >= lower(r.ids) and j.job_id < upper(r.ids)
                  where j.state = 'Held')
  and not exists (select from unnest(d.jobs) as r(ids) join block b on int8range(b.first, b.last, '[]') && r.ids
                  where b.state = 'Held');

-- name: lock_rows
-- Lock some of these jobs that have rows and the given state, with one of the reason codes if any are given.
select j.job_id
from job j join unnest($1::text::int8multirange) as r(ids) on j.job_id >= lower(r.ids) and j.job_id < upper(r.ids)
where j.state = $2 and ($3::text[] is null or j.reason = any ($3)) order by j.job_id limit $4 for update of j;

-- name: hold_codes
-- The reason codes of these jobs as far as they are Held.
select job_id, reason from job where job_id = any ($1::bigint[]) and state = 'Held';

-- name: visible
-- The number of jobs of each range within the user's scope. All jobs of a sweep have the same owner.
select r.low, r.high, s.jobs + case when s.jobs = r.high - r.low + 1 then 0 else (
    select count(*) from job j
    where j.job_id between r.low and r.high and j.array_index is null and ($3::text is null or j.owner = $3)
      and ($4::text is null or j.owner_group = $4) and ($5::text is null or j.vo = $5)
) end as jobs
from unnest($1::bigint[], $2::bigint[]) as r(low, high)
cross join lateral (
    select coalesce(sum(least(w.last, r.high) - greatest(w.first, r.low) + 1), 0)::bigint as jobs
    from (
        select first, last, owner, owner_group, vo from sweep where first <= r.low order by first desc limit 1
    ) w
    where w.last >= r.low and ($3::text is null or w.owner = $3) and ($4::text is null or w.owner_group = $4)
      and ($5::text is null or w.vo = $5)
) b
cross join lateral (
    select b.jobs + coalesce(sum(least(w.last, r.high) - w.first + 1), 0)::bigint as jobs
    from sweep w where w.first > r.low and w.first <= r.high and ($3::text is null or w.owner = $3)
      and ($4::text is null or w.owner_group = $4) and ($5::text is null or w.vo = $5)
) s;

-- name: bodies
-- The descriptions of these jobs as far as they are Held.
select d.description_id, d.body::text as body from description d
where d.description_id in (
    select j.description_id from job j
    join unnest($1::text::int8multirange) as r(ids) on j.job_id >= lower(r.ids) and j.job_id < upper(r.ids)
    where j.state = 'Held'
    union
    select s.description_id from block b join sweep s on s.first = b.sweep
    join unnest($1::text::int8multirange) as r(ids) on int8range(b.first, b.last, '[]') && r.ids
    where b.state = 'Held'
)
order by d.description_id;

-- name: rewrite_bodies
-- Replace the texts of descriptions.
update description d set body = n.body::json
from unnest($1::bigint[], $2::text[]) as n(description_id, body) where d.description_id = n.description_id;

-- name: outputs
-- The last output of each of these jobs that has one.
select distinct on (a.job_id) a.job_id, a.output_sha256, a.output_bytes
from unnest($1::text::int8multirange) as r(ids)
join attempt a on a.job_id >= lower(r.ids) and a.job_id < upper(r.ids)
where a.output_sha256 is not null order by a.job_id, a.epoch desc;
