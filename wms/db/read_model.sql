-- name: description
-- A job's index in its sweep, its own parameters, and its description.
select j.array_index, j.parameters, d.body::text as body from job j join description d using (description_id) where j.job_id = $1
union all
select $1::bigint - s.first, (
        select jsonb_object_agg(l.name, l.list -> (($1::bigint - s.first) % 1000)::integer)
        from parameter p cross join lateral jsonb_each(p.columns::jsonb) as l(name, list)
        where p.description_id = s.description_id and p.chunk = ($1::bigint - s.first) / 1000
    ), d.body::text
from block b join sweep s on s.first = b.sweep join description d using (description_id)
where int8range(b.first, b.last, '[]') @> $1::bigint;

-- name: attempts
-- The attempts of a job. A withdrawn offer is none; the history tells of it.
select a.epoch, a.pilot_id, a.site, a.ce, a.offered_at, a.accepted_at, a.started_at, a.ended_at, a.outcome, a.reason,
       a.reason_text, a.exit_code, a.signal, a.cpu_user_seconds + a.cpu_system_seconds as cpu_seconds, a.wall_seconds,
       a.max_rss_bytes, a.disk_bytes, a.output_sha256, a.output_bytes,
       coalesce(l.usage_points, e.usage_points, '[]')::text as usage_points
from attempt a
left join lease l on l.job_id = a.job_id and l.epoch = a.epoch
left join ended_attempt e on e.job_id = a.job_id and e.epoch = a.epoch
where a.job_id = $1 and a.outcome is distinct from 'withdrawn' order by a.epoch;

-- name: history
-- The history entries of a job.
select seq, at, event, state, epoch, reason, text, source from job_event where job_id = $1
union all
select m.seq, m.at, m.event, m.state, 0, m.reason, m.text, m.source
from block b
cross join lateral jsonb_to_recordset(b.history)
    as m(seq integer, at timestamptz, event text, state text, reason text, text text, source text)
where int8range(b.first, b.last, '[]') @> $1::bigint
order by seq;

-- name: tails
-- The ends of standard output and error of the job's last attempt.
select a.stdout_tail, a.stderr_tail, e.stdout_from, e.stderr_from
from attempt a left join ended_attempt e on e.job_id = a.job_id and e.epoch = a.epoch
where a.job_id = $1 and a.outcome is distinct from 'withdrawn' order by a.epoch desc limit 1;

-- name: queues
-- Task queues with waiting jobs within the user's scope, fullest first.
select q.tq_id, q.owner, q.owner_group, q.vo, q.cpu_segment, w.jobs as waiting, q.requirements::text as requirements
from waiting w join task_queue q using (tq_id)
where ($1::text is null or q.owner = $1) and ($2::text is null or q.owner_group = $2) and ($3::text is null or q.vo = $3)
order by w.jobs desc, q.tq_id limit $4;

-- name: watched_queues
-- The same from a matcher's statistics, without counting jobs.
select q.tq_id, q.owner, q.owner_group, q.vo, q.cpu_segment, w.waiting, q.requirements::text as requirements
from queue_state w join task_queue q using (tq_id)
where w.waiting > 0
  and ($1::text is null or q.owner = $1) and ($2::text is null or q.owner_group = $2) and ($3::text is null or q.vo = $3)
order by w.waiting desc, q.tq_id limit $4;

-- name: sites
-- Computing elements with the numbers of their pilots and running jobs.
select a.site, a.ce, a.element::text as element, a.advertised_at, a.expires_at, a.expires_at > now() as fresh,
       count(p.pilot_id) as pilots, coalesce(sum(p.busy), 0) as running_jobs,
       coalesce(sum(greatest(p.slots - p.busy, 0)) filter (where p.state = 'Running'), 0) as free_slots,
       min(c.allowed) as allowed, coalesce(min(c.matched), 0) as matched, coalesce(min(c.sent), 0) as sent,
       coalesce(min(c.idle), 0) as idle, coalesce(min(c.unseen), 0) as unseen,
       array_remove(array_agg(distinct p.isolation order by p.isolation), '') as isolation,
       left(coalesce(a.attributes ->> 'GlobusResourceContactString', ''), 4096) as entry_point,
       left(coalesce(a.attributes ->> 'MonitoringDatabaseURL', ''), 4096) as monitoring_database,
       array(select left(name, 255) from jsonb_array_elements_text(case jsonb_typeof(a.attributes -> 'StationNames')
             when 'array' then a.attributes -> 'StationNames' else '[]' end) as s(name) limit 100) as stations
from (
    select site, ce, element, advertised_at, expires_at, attributes from ad
    where withdrawn_at is null and expires_at > now() - interval '1 d' and ($3 = '' or site = $3) and ($4 = '' or ce = $4)
    order by site, ce offset $1 limit $2
) a
left join pilot p on p.site = a.site and p.ce = a.ce and p.ended_at is null
left join limit_counter c on c.site = a.site and c.ce = a.ce and c.attribute = 'any' and c.value = ''
group by a.site, a.ce, a.element, a.advertised_at, a.expires_at, a.attributes order by a.site, a.ce;

-- name: losses
-- The number of pilots that ended within the last hour, and of those that failed before they sent a message. Those that we cancelled
-- do not count.
select site, ce, count(*) as ended, count(*) filter (where state in ('Failed', 'Aborted') and seen_at is null) as lost
from pilot where ended_at > now() - interval '1 h' and cancelled_at is null group by site, ce;

-- name: isolation_of_last_attempt
-- How the pilot of a job's last attempt isolates payloads; no row without an attempt.
select p.isolation from attempt a join pilot p using (pilot_id)
where a.job_id = $1 and a.outcome is distinct from 'withdrawn' order by a.epoch desc limit 1;

-- name: places
-- Every stored computing element, with the numbers of one VO's live pilots there.
with there as (
    select site, ce,
           count(*) filter (where state = 'Running') as running,
           count(*) filter (where state in ('Submitting', 'Submitted', 'Waiting')) as coming,
           sum(slots) filter (where state = 'Running') as slots,
           sum(greatest(slots - busy, 0)) filter (where state = 'Running') as free_slots
    from pilot where ended_at is null and job_id is null and vo = $1 group by site, ce
)
select a.site, a.ce, a.received_at, a.pilot_seconds, a.expires_at > now() as fresh, coalesce(t.running, 0) as running,
       coalesce(t.coming, 0) as coming, coalesce(t.slots, 0) as slots, coalesce(t.free_slots, 0) as free_slots
from ad a left join there t using (site, ce) order by a.site, a.ce;
