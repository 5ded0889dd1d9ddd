-- name: scan
-- The selected jobs among the next $3 along one index ($1), at most $6 of them, and the last of the $3.
-- $2 is whether the scan goes down, $4 the id after which it begins, $5 the owner in the index. Each index is scanned in its own order,
-- so that Postgres cannot choose another one. What the conditions leave out was scanned all the same: it has its number.
select job_id, number, selected
from (
    select j.job_id, row_number() over () as number,
           ($7::text is null or j.owner = $7) and ($8::text is null or j.owner_group = $8) and ($9::text is null or j.vo = $9)
           and ($10::text is null or j.owner = $10) and ($11::text is null or j.site = $11)
           and ($12::text is null or j.name like $12) and ($13::text is null or j.job_group = $13)
           and ($14::timestamptz is null or j.changed_at >= $14) and not ($15 and j.array_index is not null)
           and ($16::text[] is null or j.state = any ($16)) as selected
    from (
        (select * from job where $1::text = 'all' and not $2 and job_id > $4 order by job_id limit $3)
        union all
        (select * from job where $1 = 'all' and $2 and job_id < $4 order by job_id desc limit $3)
        union all
        (select * from job where $1 = 'owner' and not $2 and (owner, job_id) > ($5, $4) and owner <= $5
         order by owner, job_id limit $3)
        union all
        (select * from job where $1 = 'owner' and $2 and (owner, job_id) < ($5, $4) and owner >= $5
         order by owner desc, job_id desc limit $3)
        union all
        (select * from job where $1 = 'group' and not $2 and job_group <> ''
           and (owner, job_group, job_id) > ($5, $13, $4) and (owner, job_group) <= ($5, $13)
         order by owner, job_group, job_id limit $3)
        union all
        (select * from job where $1 = 'group' and $2 and job_group <> ''
           and (owner, job_group, job_id) < ($5, $13, $4) and (owner, job_group) >= ($5, $13)
         order by owner desc, job_group desc, job_id desc limit $3)
        union all
        (select * from job where $1 = 'rare state' and not $2 and rare_state is not null
           and (rare_state, job_id) > ($17, $4) and rare_state <= $17
         order by rare_state, job_id limit $3)
        union all
        (select * from job where $1 = 'rare state' and $2 and rare_state is not null
           and (rare_state, job_id) < ($17, $4) and rare_state >= $17
         order by rare_state desc, job_id desc limit $3)
        union all
        (select * from job where $1 = 'rare state of owner' and not $2 and rare_state is not null
           and (owner, rare_state, job_id) > ($5, $17, $4) and (owner, rare_state) <= ($5, $17)
         order by owner, rare_state, job_id limit $3)
        union all
        (select * from job where $1 = 'rare state of owner' and $2 and rare_state is not null
           and (owner, rare_state, job_id) < ($5, $17, $4) and (owner, rare_state) >= ($5, $17)
         order by owner desc, rare_state desc, job_id desc limit $3)
        union all
        (select j.* from (select job_id from lease where $1 = 'leases' and not $2 and job_id > $4 order by job_id limit $3) l,
           lateral (select * from job where job_id = l.job_id offset 0) j
         order by l.job_id)
        union all
        (select j.* from (select job_id from lease where $1 = 'leases' and $2 and job_id < $4 order by job_id desc limit $3) l,
           lateral (select * from job where job_id = l.job_id offset 0) j
         order by l.job_id desc)
    ) j
) scanned
where selected or number = $3 limit $6;
