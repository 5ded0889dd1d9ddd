-- name: of_jobs
-- The descriptions of jobs, and whether each belongs to a whole sweep.
select j.job_id, j.description_id, d.body::text as body,
       j.array_index is not null and (
           exists (select from sweep s where s.description_id = j.description_id)
           or exists (select from forgetting f where f.description_id = j.description_id)
       ) as shared
from job j join description d using (description_id) where j.job_id = any ($1::bigint[]) order by j.job_id;

-- name: rewrite
-- Replace descriptions that belong to single jobs.
update description d set body = n.body::json
from unnest($1::bigint[], $2::text[]) as n(description_id, body) where d.description_id = n.description_id;

-- name: requeue
-- Store new descriptions, task queues and priorities of jobs.
update job j
set description_id = n.description_id, tq_id = n.tq_id, user_priority = n.user_priority, max_attempts = n.max_attempts
from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::real[], $5::smallint[])
    as n(job_id, description_id, tq_id, user_priority, max_attempts)
where j.job_id = n.job_id;

-- name: last_moves
-- The reason and the source of each job's last move.
select job_id, reason, text, source from job_move
where (job_id, seq) in (select * from unnest($1::bigint[], $2::integer[]));
