-- name: jobs_after
-- The next jobs after an id whose last attempt started and ended: their requirements, and the seconds that this attempt ran.
select j.job_id, j.submitted_at, j.user_priority, q.requirements::text as requirements, a.site, a.run_seconds
from job j
join task_queue q using (tq_id)
join lateral (
    select t.site, extract(epoch from t.ended_at - t.started_at)::double precision as run_seconds
    from attempt t where t.job_id = j.job_id and t.started_at is not null and t.ended_at is not null
    order by t.epoch desc limit 1
) a on true
where j.job_id > $1 order by j.job_id limit $2;
