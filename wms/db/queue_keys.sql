-- name: lock
-- Keep others from changing queues until the transaction ends.
lock table task_queue in share row exclusive mode;

-- name: all
-- All task queues, the oldest first.
select tq_id, key, requirements from task_queue order by tq_id;

-- name: move_jobs
-- Move the jobs of each queue to the one that stays for it.
update job j set tq_id = m.staying from unnest($1::bigint[], $2::bigint[]) as m(gone, staying) where j.tq_id = m.gone;

-- name: move_sweeps
-- Move the sweeps of each queue to the one that stays for it.
update sweep s set tq_id = m.staying from unnest($1::bigint[], $2::bigint[]) as m(gone, staying) where s.tq_id = m.gone;

-- name: revive
-- Restore queues that stay for some that were not removed.
update task_queue t set removed_at = null, empty_since = null
from unnest($1::bigint[], $2::bigint[]) as m(gone, staying) join task_queue g on g.tq_id = m.gone
where t.tq_id = m.staying and g.removed_at is null;

-- name: delete
-- Delete queues without jobs.
delete from task_queue where tq_id = any ($1::bigint[]);

-- name: unset
-- Give queues keys that none has, so that their new ones are free.
update task_queue set key = decode(md5('former ' || tq_id), 'hex') || decode(md5('key ' || tq_id), 'hex')
where tq_id = any ($1::bigint[]);

-- name: set
-- Give queues their keys.
update task_queue t set key = k.key from unnest($1::bigint[], $2::bytea[]) as k(tq_id, key) where t.tq_id = k.tq_id;
