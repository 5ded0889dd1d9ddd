-- name: accept
-- Turn offers into leases of their pilots, or renew leases that were accepted before.
update lease l set phase = 'accepted', accepted_at = coalesce(l.accepted_at, now()),
                   expires_at = now() + make_interval(secs => $2)
where l.job_id = any ($1::bigint[]);

-- name: started
-- Store in the leases when payloads started, and the number of the start in the job's history. Their inputs are there.
update lease l set started_at = now(), start_seq = t.seq, staging = null
from unnest($1::bigint[], $2::integer[]) as t(job_id, seq)
where l.job_id = t.job_id;

-- name: note_usage
-- Store what attempts used over time, for pilots that hold their leases.
update lease l set usage_points = n.points::jsonb
from unnest($1::bigint[], $2::integer[], $3::text[], $4::text[]) as n(job_id, epoch, pilot_id, points)
where l.job_id = n.job_id and l.epoch = n.epoch and l.pilot_id = n.pilot_id and l.phase = 'accepted';

-- name: finish
-- End leases: the history entries that they held move into rows of ended attempts, each written once. An attempt that was withdrawn
-- counts as never accepted. Usage that was not reported is stored as 0.
with ended as (
    delete from lease l
    using unnest($1::bigint[], $2::integer[], $3::text[], $4::text[], $5::text[], $6::integer[], $7::integer[],
                 $8::double precision[], $9::double precision[], $10::double precision[], $11::bigint[], $12::bigint[],
                 $13::text[], $14::bigint[], $15::text[], $16::text[], $17::boolean[], $18::boolean[], $19::integer[],
                 $20::integer[], $21::bigint[], $22::bigint[])
        as t(job_id, epoch, outcome, reason, reason_text, exit_code, signal, cpu_user, cpu_system, wall, max_rss, disk,
             output_sha256, output_bytes, stdout_tail, stderr_tail, accepted, ran, start_seq, end_seq,
             stdout_from, stderr_from)
    where l.job_id = t.job_id and l.epoch = t.epoch
    returning l.job_id, l.epoch, l.pilot_id, l.site, l.ce, l.granted_at, l.accepted_at as taken_at, l.started_at as begun_at,
              l.seq, coalesce(l.start_seq, t.start_seq) as start_seq, t.end_seq, t.accepted, t.ran, t.outcome, t.reason,
              t.reason_text, t.exit_code, t.signal, t.cpu_user, t.cpu_system, t.wall, t.max_rss, t.disk, t.output_sha256,
              t.output_bytes, t.stdout_tail, t.stderr_tail, t.stdout_from, t.stderr_from, l.usage_points
)
insert into ended_attempt (
    job_id, epoch, pilot_id, site, ce, offered_at, accepted_at, started_at, ended_at, outcome, reason, reason_text,
    exit_code, signal, cpu_user_seconds, cpu_system_seconds, wall_seconds, max_rss_bytes, disk_bytes, output_sha256,
    output_bytes, stdout_tail, stderr_tail, stdout_from, stderr_from, match_seq, start_seq, end_seq, usage_points
)
select job_id, epoch, pilot_id, site, ce, granted_at,
       case when outcome <> 'withdrawn' then coalesce(taken_at, case when accepted then now() end) end,
       coalesce(begun_at, case when ran or start_seq is not null then now() end),
       now(), outcome, reason, coalesce(reason_text, ''), exit_code, signal, coalesce(cpu_user, 0), coalesce(cpu_system, 0),
       coalesce(wall, 0), coalesce(max_rss, 0), coalesce(disk, 0), output_sha256, output_bytes, coalesce(stdout_tail, ''),
       coalesce(stderr_tail, ''), stdout_from, stderr_from, seq, start_seq, end_seq, usage_points
from ended;

-- name: recorded
-- Attempts of these pilots whose results are recorded already: a repeated report of them is acknowledged again.
select a.job_id, a.epoch
from ended_attempt a join unnest($1::bigint[], $2::integer[], $3::text[]) as t(job_id, epoch, pilot_id)
    on a.job_id = t.job_id and a.epoch = t.epoch and a.pilot_id = t.pilot_id
where a.outcome in ('done', 'failed', 'killed') or (
    a.outcome = 'lost' and a.reason not in ('LEASE_EXPIRED', 'OFFER_EXPIRED', 'PILOT_DIED', 'NODE_LOST', 'PILOT_FORGOTTEN')
);

-- name: failed
-- How many attempts of each of these jobs failed by their programs since its user last ordered that it starts anew.
select a.job_id, count(*) as attempts
from ended_attempt a
where a.job_id = any ($1::bigint[]) and a.outcome in ('failed') and a.epoch > coalesce((
    select max(e.epoch) from job_event e
    where e.job_id = a.job_id and e.event = 'reschedule' and e.reason = 'RESCHEDULED_BY_USER'), 0)
group by a.job_id;

-- name: expired
-- Jobs whose lease has run out, oldest first.
select job_id from lease where expires_at <= now() order by expires_at limit $1;

-- name: clock_set
-- Move the ends of leases after the database's clock was set by $1 seconds, so that they end when they would have.
update lease set expires_at = expires_at + make_interval(secs => $1) where ($1 > 0 and expires_at <= now())
    or ($1 < 0 and expires_at > now() + make_interval(secs => $2));

-- name: of_pilots
-- The jobs that these pilots hold.
select job_id from lease where pilot_id = any ($1::text[]) order by job_id;
