-- name: begin
-- Start consumers of partitions that have no offset yet at the beginning.
insert into consumer_offset (cluster_id, consumer, topic, partition, next_offset)
select $1, $2, $3, p, 0 from unnest($4::integer[]) as p
on conflict do nothing;

-- name: read
-- How far a consumer is in these partitions.
select partition, next_offset from consumer_offset
where cluster_id = $1 and consumer = $2 and topic = $3 and partition = any ($4::integer[]);

-- name: advance
-- Move offsets that nobody else has moved: the fence against a consumer that lost its partition.
update consumer_offset o set next_offset = m.following, moved_at = now()
from unnest($4::integer[], $5::bigint[], $6::bigint[]) as m(partition, expected, following)
where o.cluster_id = $1 and o.consumer = $2 and o.topic = $3 and o.partition = m.partition
  and o.next_offset = m.expected
returning now() as now;

-- name: find
-- Where a consumer is in a partition, and since when.
select next_offset from consumer_offset where cluster_id = $1 and consumer = $2 and topic = $3 and partition = $4;

-- name: wait_briefly
-- Whoever holds a lock is waited for but for a moment in this transaction.
set local lock_timeout = '3s';

-- name: backend
-- Who this transaction is to others.
select pg_backend_pid();

-- name: end_blockers
-- End the sessions that keep another from going on.
select pg_terminate_backend(pid) from unnest(pg_blocking_pids($1)) as pid;

-- name: of_cluster
-- Where all consumers are in what they read of a cluster, and for how long they have been there.
select consumer, topic, partition, next_offset, extract(epoch from now() - moved_at)::float8 as age
from consumer_offset where cluster_id = $1 order by consumer, topic, partition;
