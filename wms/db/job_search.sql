-- name: oldest
-- The first jobs after an id that a user may see and that all conditions select, among the next $12 jobs of an owner, or those of them
-- with one rare state or group: each of these has an index. If fewer than wanted are selected, and not all jobs were looked at, a
-- last row has the id of the last job that was.
with looked as materialized (
    select j.job_id, j.owner_group, j.vo, j.state, j.site, j.name, j.job_group, j.changed_at, j.array_index
    from job j
    where ($1::text is null or j.owner = $1) and ($4::text is null or j.owner = $4) and ($9::bigint is null or j.job_id > $9)
      and ($14::text is null or j.rare_state = $14) and ($15::text is null or j.job_group = $15 and j.job_group <> '')
    order by j.job_id limit $12
), hits as materialized (
    select l.job_id from looked l
    where ($2::text is null or l.owner_group = $2) and ($3::text is null or l.vo = $3) and ($13::text[] is null or l.state = any ($13))
      and ($5::text is null or l.site = $5) and ($6::text is null or l.name like $6)
      and ($7::text is null or l.job_group = $7) and ($8::timestamptz is null or l.changed_at >= $8)
      and not ($11 and l.array_index is not null)
    order by l.job_id limit $10
)
select job_id, true as selected from hits
union all
select max(job_id), false from looked where (select count(*) from hits) < $10 having count(*) = $12;

-- name: newest
-- The same from the newest job on.
with looked as materialized (
    select j.job_id, j.owner_group, j.vo, j.state, j.site, j.name, j.job_group, j.changed_at, j.array_index
    from job j
    where ($1::text is null or j.owner = $1) and ($4::text is null or j.owner = $4) and ($9::bigint is null or j.job_id < $9)
      and ($14::text is null or j.rare_state = $14) and ($15::text is null or j.job_group = $15 and j.job_group <> '')
    order by j.job_id desc limit $12
), hits as materialized (
    select l.job_id from looked l
    where ($2::text is null or l.owner_group = $2) and ($3::text is null or l.vo = $3) and ($13::text[] is null or l.state = any ($13))
      and ($5::text is null or l.site = $5) and ($6::text is null or l.name like $6)
      and ($7::text is null or l.job_group = $7) and ($8::timestamptz is null or l.changed_at >= $8)
      and not ($11 and l.array_index is not null)
    order by l.job_id desc limit $10
)
select job_id, true as selected from hits
union all
select min(job_id), false from looked where (select count(*) from hits) < $10 having count(*) = $12;

-- name: oldest_at_pilots
-- The same among the next $12 jobs that pilots have.
with looked as materialized (
    select j.job_id, j.owner, j.owner_group, j.vo, j.state, j.site, j.name, j.job_group, j.changed_at, j.array_index
    from (
        select job_id from lease where $9::bigint is null or job_id > $9 order by job_id limit $12
    ) l
    join job j using (job_id)
    order by j.job_id
), hits as materialized (
    select l.job_id from looked l
    where ($1::text is null or l.owner = $1) and ($2::text is null or l.owner_group = $2) and ($3::text is null or l.vo = $3)
      and ($4::text is null or l.owner = $4) and ($13::text[] is null or l.state = any ($13))
      and ($5::text is null or l.site = $5) and ($6::text is null or l.name like $6)
      and ($7::text is null or l.job_group = $7) and ($8::timestamptz is null or l.changed_at >= $8)
      and not ($11 and l.array_index is not null)
    order by l.job_id limit $10
)
select job_id, true as selected from hits
union all
select max(job_id), false from looked where (select count(*) from hits) < $10 having count(*) = $12;

-- name: newest_at_pilots
-- The same from the newest job on.
with looked as materialized (
    select j.job_id, j.owner, j.owner_group, j.vo, j.state, j.site, j.name, j.job_group, j.changed_at, j.array_index
    from (
        select job_id from lease where $9::bigint is null or job_id < $9 order by job_id desc limit $12
    ) l
    join job j using (job_id)
    order by j.job_id desc
), hits as materialized (
    select l.job_id from looked l
    where ($1::text is null or l.owner = $1) and ($2::text is null or l.owner_group = $2) and ($3::text is null or l.vo = $3)
      and ($4::text is null or l.owner = $4) and ($13::text[] is null or l.state = any ($13))
      and ($5::text is null or l.site = $5) and ($6::text is null or l.name like $6)
      and ($7::text is null or l.job_group = $7) and ($8::timestamptz is null or l.changed_at >= $8)
      and not ($11 and l.array_index is not null)
    order by l.job_id desc limit $10
)
select job_id, true as selected from hits
union all
select min(job_id), false from looked where (select count(*) from hits) < $10 having count(*) = $12;
