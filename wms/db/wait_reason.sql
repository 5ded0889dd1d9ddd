-- name: may_look
-- Take the lock for finding wait reasons until the transaction ends; false if another transaction holds it.
select pg_try_advisory_xact_lock(7104);

-- name: crews
-- The numbers of live pilots that take any job, by computing element and VO.
select site, ce, vo, count(*) filter (where state = 'Running') as running,
       count(*) filter (where state in ('Submitting', 'Submitted', 'Waiting')) as coming,
       coalesce(sum(slots) filter (where state = 'Running'), 0) as slots,
       coalesce(sum(greatest(slots - busy, 0)) filter (where state = 'Running'), 0) as free_slots
from pilot where ended_at is null and job_id is null group by site, ce, vo;

-- name: known
-- Every stored computing element.
select site, ce, received_at, pilot_seconds, expires_at > now() as fresh from ad order by site, ce;

-- name: read
-- The wait reasons as last published.
select tq_id, code, chance, extract(epoch from now() - since)::double precision as age from wait_reason;

-- name: write
-- Store the wait reasons of queues.
insert into wait_reason (tq_id, code, text, chance)
select w.tq_id, w.code, w.text, w.chance
from unnest($1::bigint[], $2::text[], $3::text[], $4::double precision[]) as w(tq_id, code, text, chance)
on conflict (tq_id) do update
set code = excluded.code, text = excluded.text, chance = excluded.chance,
    since = case when wait_reason.code = excluded.code then wait_reason.since else now() end;

-- name: forget
-- Delete the wait reasons of queues without waiting jobs.
delete from wait_reason where tq_id = any ($1::bigint[]);

-- name: of_jobs
-- The wait reasons of these jobs as far as they wait.
select j.job_id, r.code, r.text from job j join wait_reason r using (tq_id)
where j.job_id = any ($1::bigint[]) and j.state = 'Waiting'
union all
select w.job_id, r.code, r.text
from unnest($1::bigint[]) as w(job_id)
join block b on int8range(b.first, b.last, '[]') @> w.job_id and b.state = 'Waiting'
join sweep s on s.first = b.sweep join wait_reason r using (tq_id);

-- name: chance
-- The share of the draws for free slots that goes to a queue.
select chance from wait_reason where tq_id = $1;
