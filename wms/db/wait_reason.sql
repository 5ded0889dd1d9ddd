-- name: may_look
-- Whether this transaction is the one that looks why queues wait.
select pg_try_advisory_xact_lock(7104);

-- name: crews
-- The pilots of each VO on each computing element.
select site, ce, vo, count(*) filter (where state = 'Running') as running,
       count(*) filter (where state in ('Submitting', 'Submitted', 'Waiting')) as coming,
       coalesce(sum(slots) filter (where state = 'Running'), 0) as slots,
       coalesce(sum(greatest(slots - busy, 0)) filter (where state = 'Running'), 0) as free_slots
from pilot where ended_at is null group by site, ce, vo;

-- name: known
-- Every computing element within memory.
select site, ce, received_at, pilot_seconds, expires_at > now() as fresh from ad order by site, ce;

-- name: read
-- Why queues wait, as it was last told.
select tq_id, code, chance, extract(epoch from now() - since)::double precision as age from wait_reason;

-- name: write
-- Why queues wait from now on.
insert into wait_reason (tq_id, code, text, chance)
select w.tq_id, w.code, w.text, w.chance
from unnest($1::bigint[], $2::text[], $3::text[], $4::double precision[]) as w(tq_id, code, text, chance)
on conflict (tq_id) do update
set code = excluded.code, text = excluded.text, chance = excluded.chance,
    since = case when wait_reason.code = excluded.code then wait_reason.since else now() end;

-- name: forget
-- Queues in which nothing waits any more.
delete from wait_reason where tq_id = any ($1::bigint[]);

-- name: of_jobs
-- Why these jobs wait, of those that do.
select j.job_id, r.code, r.text from job j join wait_reason r using (tq_id)
where j.job_id = any ($1::bigint[]) and j.state = 'Waiting'
union all
select w.job_id, r.code, r.text
from unnest($1::bigint[]) as w(job_id)
join block b on int8range(b.first, b.last, '[]') @> w.job_id and b.state = 'Waiting'
join sweep s on s.first = b.sweep join wait_reason r using (tq_id);

-- name: chance
-- The part of the draws for free slots that fell to a queue lately.
select chance from wait_reason where tq_id = $1;
