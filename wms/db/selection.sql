-- name: of_ranges
-- Ids of the jobs in ranges that are within the user's scope and that the selector selects.
select j.job_id
from unnest($1::bigint[], $2::bigint[]) as r(lo, hi) join job j on j.job_id between r.lo and r.hi
where ($3::text is null or j.owner = $3) and ($4::text is null or j.owner_group = $4) and ($5::text is null or j.vo = $5)
  and ($6::text is null or j.owner = $6) and ($7::text[] is null or j.state = any ($7))
  and ($8::text is null or j.site = $8) and ($9::text is null or j.name like $9)
  and ($10::text is null or j.job_group = $10) and ($11::timestamptz is null or j.changed_at >= $11)
  and ($12::bigint is null or j.job_id > $12) and not ($14 and j.array_index is not null)
order by j.job_id limit $13;

-- name: lines
-- The list entries of jobs.
select job_id, name, job_group, owner, owner_group, vo, state, reason, site, attempts, submitted_at, changed_at
from job where job_id = any ($1::bigint[]);
