-- name: read
-- The run times of queues.
select tq_id, mean, spread from run_time where tq_id = any ($1::bigint[]);

-- name: write
-- Store the run times of queues.
insert into run_time as r (tq_id, mean, spread)
select * from unnest($1::bigint[], $2::double precision[], $3::double precision[])
on conflict (tq_id) do update set mean = excluded.mean, spread = excluded.spread, changed_at = now();

-- name: changed
-- The run times that were stored since a time, and a while before: transactions commit late.
select tq_id, mean, spread, changed_at from run_time where $1::timestamptz is null or changed_at > $1 - interval '10 s';
