-- name: find
-- The queues of these keys, locked against removal until the transaction ends.
select tq_id, key from task_queue where key = any ($1::bytea[]) and removed_at is null order by key for share;

-- name: make
-- Create queues, or restore removed ones. Keys come sorted, so that two transactions do not deadlock.
insert into task_queue (key, owner, owner_group, vo, cpu_segment, requirements)
select q.key, q.owner, q.owner_group, q.vo, q.cpu_segment, q.requirements::jsonb
from unnest($1::bytea[], $2::text[], $3::text[], $4::text[], $5::integer[], $6::text[])
    as q(key, owner, owner_group, vo, cpu_segment, requirements)
on conflict (key) do update set removed_at = null, empty_since = null
returning tq_id, key;

-- name: keep
-- Lock queues against removal while jobs return to them, and return which of them are removed.
select tq_id, removed_at is not null as removed from task_queue where tq_id = any ($1::bigint[]) order by tq_id for share;

-- name: revive
-- Restore removed queues.
update task_queue set removed_at = null, empty_since = null where tq_id = any ($1::bigint[]);

-- name: read
-- The requirements of queues.
select tq_id, requirements from task_queue where tq_id = any ($1::bigint[]);

-- name: mark_empty
-- Store since when queues have had no waiting job.
update task_queue t set empty_since = case when w.tq_id is null then now() end
from task_queue old left join waiting w using (tq_id)
where t.tq_id = old.tq_id and old.removed_at is null and (old.empty_since is null) = (w.tq_id is null);

-- name: lock_long_empty
-- Lock queues that have been empty for long against new jobs.
select tq_id from task_queue
where removed_at is null and empty_since < now() - make_interval(secs => $1)
order by tq_id limit 500 for update skip locked;

-- name: remove
-- Remove the locked queues that still have no waiting jobs.
update task_queue set removed_at = now()
where tq_id = any ($1::bigint[])
  and tq_id not in (select tq_id from waiting where tq_id = any ($1::bigint[]));
