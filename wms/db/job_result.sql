-- name: of_jobs
-- Of these jobs that have rows: what distinguishes each in its array, and how its last attempt went. A withdrawn offer is none.
select g.job_id, j.array_index, j.parameters, a.epoch as attempt, a.ce, a.started_at, a.ended_at, a.exit_code, a.signal,
       a.cpu_user_seconds + a.cpu_system_seconds as cpu_seconds, a.wall_seconds, a.max_rss_bytes
from unnest($1::bigint[]) as g(job_id)
join job j on j.job_id = g.job_id
left join lateral (
    select epoch, ce, started_at, ended_at, exit_code, signal, cpu_user_seconds, cpu_system_seconds, wall_seconds, max_rss_bytes
    from attempt where job_id = g.job_id and outcome is distinct from 'withdrawn' order by epoch desc limit 1
) a on true;
