-- name: next_rows
-- The newest $1 jobs with rows below the id $2 along one index ($3), in which the owner is $4 and the rare state $5: their number by state
-- and reason. $6 and $7 are the first and the last ids of ranges, the highest first. `selected` is whether the conditions hold. Each index
-- is scanned in its own order, so that Postgres cannot choose another one.
select j.state, j.reason,
       ($8::text is null or j.owner = $8) and ($9::text is null or j.owner_group = $9) and ($10::text is null or j.vo = $10)
       and ($11::text is null or j.owner = $11) and ($12::text is null or j.site = $12)
       and ($13::text is null or j.name like $13) and ($14::text is null or j.job_group = $14)
       and ($15::timestamptz is null or j.changed_at >= $15) and ($16::text[] is null or j.state = any ($16)) as selected,
       count(*) as jobs, min(j.job_id) as lowest
from (
    (select j.* from unnest($6::bigint[], $7::bigint[]) with ordinality r(low, high, number),
       lateral (select * from job where $3::text = 'ids' and job_id >= r.low and job_id <= r.high and job_id < $2
                order by job_id desc limit $1) j
     order by r.number limit $1)
    union all
    (select * from job where $3 = 'all' and job_id < $2 order by job_id desc limit $1)
    union all
    (select * from job where $3 = 'owner' and (owner, job_id) < ($4, $2) and owner >= $4
     order by owner desc, job_id desc limit $1)
    union all
    (select * from job where $3 = 'group' and job_group <> ''
       and (owner, job_group, job_id) < ($4, $14, $2) and (owner, job_group) >= ($4, $14)
     order by owner desc, job_group desc, job_id desc limit $1)
    union all
    (select * from job where $3 = 'rare state' and rare_state is not null
       and (rare_state, job_id) < ($5::text, $2) and rare_state >= $5
     order by rare_state desc, job_id desc limit $1)
    union all
    (select * from job where $3 = 'rare state of owner' and rare_state is not null
       and (owner, rare_state, job_id) < ($4, $5, $2) and (owner, rare_state) >= ($4, $5)
     order by owner desc, rare_state desc, job_id desc limit $1)
    union all
    (select j.* from (select job_id from lease where $3 = 'leases' and job_id < $2 order by job_id desc limit $1) l,
       lateral (select * from job where job_id = l.job_id offset 0) j)
) j
group by 1, 2, 3;
