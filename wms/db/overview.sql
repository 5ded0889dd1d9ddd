-- name: outcomes_of_owners
-- How attempts ended within the last $1 seconds: by owner, site, outcome and reason.
select j.owner, j.owner_group, j.vo, a.site, a.outcome, coalesce(a.reason, '') as reason, count(*) as attempts,
       max(a.job_id) as last_job, max(a.ended_at) as last_at
from ended_attempt a join job j using (job_id)
where a.ended_at > now() - make_interval(secs => $1) and a.outcome <> 'withdrawn'
group by 1, 2, 3, 4, 5, 6;

-- name: outcomes
-- The same without the owners, and without a look at the jobs, the largest first.
select site, outcome, coalesce(reason, '') as reason, count(*) as attempts, max(job_id) as last_job, max(ended_at) as last_at
from ended_attempt
where ended_at > now() - make_interval(secs => $1) and outcome <> 'withdrawn'
group by 1, 2, 3 order by 4 desc, 1, 2, 3;

-- name: waits
-- The waiting jobs within the user's scope by the reason why they wait, with the largest queue of each.
select w.code, sum(s.jobs)::bigint as jobs, count(*) as queues,
       (array_agg(q.tq_id order by s.jobs desc, q.tq_id))[1] as tq_id, (array_agg(w.text order by s.jobs desc, q.tq_id))[1] as text
from wait_reason w join task_queue q using (tq_id) join waiting s using (tq_id)
where ($1::text is null or q.owner = $1) and ($2::text is null or q.owner_group = $2) and ($3::text is null or q.vo = $3)
group by w.code;

-- name: watched_waits
-- The same from a matcher's statistics, without counting jobs.
select w.code, sum(s.waiting)::bigint as jobs, count(*) as queues,
       (array_agg(q.tq_id order by s.waiting desc, q.tq_id))[1] as tq_id,
       (array_agg(w.text order by s.waiting desc, q.tq_id))[1] as text
from wait_reason w join task_queue q using (tq_id) join queue_state s using (tq_id)
where s.waiting > 0
  and ($1::text is null or q.owner = $1) and ($2::text is null or q.owner_group = $2) and ($3::text is null or q.vo = $3)
group by w.code;

-- name: pilot_ends
-- Pilots that ended within the last $1 seconds and not by themselves, by computing element and cause.
select site, ce, coalesce(cause, nullif(reason, ''), state) as cause, count(*) as pilots,
       (array_agg(pilot_id order by ended_at desc))[1] as last_pilot, max(ended_at) as last_at
from pilot
where ended_at > now() - make_interval(secs => $1) and (cause is not null or state in ('Failed', 'Aborted'))
  and ($2::text is null or vo = $2)
group by 1, 2, 3 order by 4 desc, 1, 2, 3;
