-- name: of_rows
-- The newest $6 jobs with rows below the id $5, of the owner $1 or else of all: by job group, by description those of arrays without a
-- group, and by state. `visible` is whether they are within the user's scope. Each index is scanned in its own order, so that Postgres
-- cannot choose another one.
select j.job_group, case when j.job_group = '' and j.array_index is not null then j.description_id else 0 end as description_id, j.state,
       ($2::text is null or j.owner_group = $2) and ($3::text is null or j.vo = $3) as visible,
       count(*) as jobs, count(*) filter (where j.changed_at > now() - make_interval(secs => $4)) as changed_recently,
       min(j.job_id) as first, min(j.submitted_at) as submitted_at, max(j.changed_at) as changed_at
from (
    (select * from job where $1::text is null and job_id < $5 order by job_id desc limit $6)
    union all
    (select * from job where $1 is not null and (owner, job_id) < ($1, $5) and owner >= $1
     order by owner desc, job_id desc limit $6)
) j
group by 1, 2, 3, 4;

-- name: of_blocks
-- The same for jobs in blocks of arrays.
select s.job_group, case when s.job_group = '' then s.description_id else 0 end as description_id, b.state,
       sum(b.last - b.first + 1)::bigint as jobs,
       coalesce(sum(b.last - b.first + 1) filter (where b.changed_at > now() - make_interval(secs => $4)), 0)::bigint as changed_recently,
       min(b.first) as first, min(s.submitted_at) as submitted_at, max(b.changed_at) as changed_at
from block b join sweep s on s.first = b.sweep
where ($1::text is null or s.owner = $1) and ($2::text is null or s.owner_group = $2) and ($3::text is null or s.vo = $3)
group by 1, 2, 3;

-- name: arrays
-- The job arrays that were made of these descriptions.
select description_id, first, last, name from sweep where description_id = any ($1::bigint[]);
