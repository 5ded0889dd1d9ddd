-- name: of_ranges
-- The times when jobs were submitted, first offered, last started and last ended, by id.
select j.job_id, j.owner, j.vo, j.name, j.state, j.reason, j.site, j.pilot_id, j.attempts, j.submitted_at,
       a.offered_at, a.started_at, a.ended_at, a.exit_code, a.reason_text, a.wall_seconds
from unnest($1::bigint[], $2::bigint[]) as r(low, high)
join job j on j.job_id between r.low and r.high
left join lateral (
    select min(t.offered_at) as offered_at, max(t.started_at) as started_at, max(t.ended_at) as ended_at,
           (array_agg(t.exit_code order by t.epoch desc))[1] as exit_code,
           (array_agg(t.reason_text order by t.epoch desc))[1] as reason_text,
           (array_agg(t.wall_seconds order by t.epoch desc))[1] as wall_seconds
    from attempt t where t.job_id = j.job_id
) a on true
union all
select n, s.owner, s.vo, s.name, b.state, b.reason, null, null, 0, s.submitted_at, null, null, null, null, null, null
from unnest($1::bigint[], $2::bigint[]) as r(low, high)
join block b on b.last >= r.low and b.first <= r.high join sweep s on s.first = b.sweep
cross join lateral generate_series(greatest(b.first, r.low), least(b.last, r.high)) as n
order by job_id;

-- name: pilots
-- The number of pilots sent since a time, and of those that ended at least one job.
select count(*) as sent, count(*) filter (where p.jobs_done > 0) as used from pilot p where p.submitted_at >= $1;
