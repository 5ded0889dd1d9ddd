-- name: accept
-- Offers become leases of their pilots; an accepted one is renewed.
update lease l set phase = 'accepted', expires_at = now() + make_interval(secs => $2)
where l.job_id = any ($1::bigint[]);

-- name: accepted
-- When the pilots took their jobs.
update attempt a set accepted_at = now()
from unnest($1::bigint[], $2::integer[]) as t(job_id, epoch)
where a.job_id = t.job_id and a.epoch = t.epoch and a.accepted_at is null;

-- name: started
-- When the payloads began.
update attempt a set started_at = now()
from unnest($1::bigint[], $2::integer[]) as t(job_id, epoch)
where a.job_id = t.job_id and a.epoch = t.epoch and a.started_at is null;

-- name: finish
-- How attempts ended, once each; one that was given back before it began was never taken.
update attempt a
set ended_at = now(), started_at = coalesce(a.started_at, case when t.ran then now() end), outcome = t.outcome,
    accepted_at = case when t.outcome <> 'withdrawn' then a.accepted_at end,
    reason = t.reason, reason_text = t.reason_text, exit_code = t.exit_code, signal = t.signal,
    cpu_user_seconds = t.cpu_user, cpu_system_seconds = t.cpu_system, wall_seconds = t.wall,
    max_rss_bytes = t.max_rss, disk_bytes = t.disk, output_sha256 = t.output_sha256, output_bytes = t.output_bytes,
    stdout_tail = t.stdout_tail, stderr_tail = t.stderr_tail
from unnest($1::bigint[], $2::integer[], $3::text[], $4::text[], $5::text[], $6::integer[], $7::integer[],
            $8::double precision[], $9::double precision[], $10::double precision[], $11::bigint[], $12::bigint[],
            $13::text[], $14::bigint[], $15::text[], $16::text[], $17::boolean[])
    as t(job_id, epoch, outcome, reason, reason_text, exit_code, signal, cpu_user, cpu_system, wall, max_rss, disk,
         output_sha256, output_bytes, stdout_tail, stderr_tail, ran)
where a.job_id = t.job_id and a.epoch = t.epoch and a.ended_at is null;

-- name: end_leases
-- Nobody holds these jobs any more.
delete from lease where job_id = any ($1::bigint[]);

-- name: recorded
-- Of these attempts, those that this pilot had and that ended already: a report of them again is acknowledged again.
select a.job_id, a.epoch
from attempt a join unnest($1::bigint[], $2::integer[], $3::text[]) as t(job_id, epoch, pilot_id)
    on a.job_id = t.job_id and a.epoch = t.epoch and a.pilot_id = t.pilot_id
where a.outcome in ('done', 'failed', 'killed') or (a.outcome = 'lost' and a.reason not in ('LEASE_EXPIRED', 'OFFER_EXPIRED'));

-- name: expired
-- Jobs whose lease has run out, oldest first.
select job_id from lease where expires_at <= now() order by expires_at limit $1;

-- name: of_pilots
-- The jobs that these pilots hold.
select job_id from lease where pilot_id = any ($1::text[]) order by job_id;
