-- name: read
-- The share in force of each group: the one set at run time, else that of the file.
select distinct on (vo, owner_group) vo, owner_group, source, job_share, job_sharing, background, private_pilots, said_by, said_at
from share order by vo, owner_group, source desc;

-- name: is_shared
-- Whether a group shares its jobs, by the share in force.
select job_sharing from share where vo = $1 and owner_group = $2 order by source desc limit 1;

-- name: set
-- Set the share of a group at run time.
insert into share (vo, owner_group, source, job_share, job_sharing, background, private_pilots, said_by)
values ($1, $2, 'set', $3, $4, $5, $6, $7)
on conflict (vo, owner_group, source) do update
set job_share = excluded.job_share, job_sharing = excluded.job_sharing, background = excluded.background,
    private_pilots = excluded.private_pilots, said_by = excluded.said_by, said_at = now();

-- name: reset
-- Delete what was set at run time, so that the file's share is in force.
delete from share where vo = $1 and owner_group = $2 and source = 'set';

-- name: drop_file
-- Delete stored shares of the file that it no longer contains, or contains with other values.
delete from share s
where s.source = 'file' and not exists (
    select from unnest($1::text[], $2::text[], $3::double precision[], $4::boolean[], $5::boolean[], $6::boolean[])
        as f(vo, owner_group, job_share, job_sharing, background, private_pilots)
    where (f.vo, f.owner_group, f.job_share, f.job_sharing, f.background, f.private_pilots)
        = (s.vo, s.owner_group, s.job_share, s.job_sharing, s.background, s.private_pilots)
);

-- name: write_file
-- Store the shares of the file.
insert into share (vo, owner_group, source, job_share, job_sharing, background, private_pilots)
select vo, owner_group, 'file', job_share, job_sharing, background, private_pilots
from unnest($1::text[], $2::text[], $3::double precision[], $4::boolean[], $5::boolean[], $6::boolean[])
    as f(vo, owner_group, job_share, job_sharing, background, private_pilots)
on conflict (vo, owner_group, source) do nothing;

-- name: standing
-- The number of waiting jobs of each owner, and of jobs that pilots hold. With $2 the waiting jobs are those of a matcher's statistics.
with in_queues as (
    select t.vo, t.owner_group, t.owner, sum(q.jobs)::bigint as jobs
    from (
        select tq_id, jobs from waiting where not $2
        union all
        select tq_id, waiting from queue_state where $2 and waiting > 0
    ) q join task_queue t using (tq_id)
    where $1::text is null or t.vo = $1
    group by t.vo, t.owner_group, t.owner
), running as (
    select j.vo, j.owner_group, j.owner, count(*) as jobs
    from lease l join job j using (job_id)
    where $1::text is null or j.vo = $1
    group by j.vo, j.owner_group, j.owner
)
select vo, owner_group, owner, coalesce(w.jobs, 0) as waiting, coalesce(r.jobs, 0) as running
from in_queues w full join running r using (vo, owner_group, owner)
order by vo, owner_group, owner;
