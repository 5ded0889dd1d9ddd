-- name: begin
-- Store offset 0 for partitions that the consumer has not read yet.
insert into consumer_offset (cluster_id, consumer, topic, partition, next_offset)
select $1, $2, $3, p, 0 from unnest($4::integer[]) as p
on conflict do nothing;

-- name: read
-- The next offsets of a consumer in these partitions.
select partition, next_offset from consumer_offset
where cluster_id = $1 and consumer = $2 and topic = $3 and partition = any ($4::integer[]);

-- name: advance
-- Move offsets, if they still have the expected values: a consumer that lost its partition cannot commit.
update consumer_offset o set next_offset = m.following, moved_at = now()
from unnest($4::integer[], $5::bigint[], $6::bigint[]) as m(partition, expected, following)
where o.cluster_id = $1 and o.consumer = $2 and o.topic = $3 and o.partition = m.partition
  and o.next_offset = m.expected
returning now() as now;

-- name: find
-- The next offset of a consumer in a partition.
select next_offset from consumer_offset where cluster_id = $1 and consumer = $2 and topic = $3 and partition = $4;

-- name: wait_briefly
-- Limit the wait for locks in this transaction to 3 s.
set local lock_timeout = '3s';

-- name: backend
-- The process id of this transaction's backend.
select pg_backend_pid();

-- name: end_blockers
-- End the sessions for whose locks another session waits.
select pg_terminate_backend(pid) from unnest(pg_blocking_pids($1)) as pid;

-- name: of_cluster
-- The offsets of all consumers of a cluster, with the seconds since they last moved.
select consumer, topic, partition, next_offset, extract(epoch from now() - moved_at)::float8 as age
from consumer_offset where cluster_id = $1 order by consumer, topic, partition;
