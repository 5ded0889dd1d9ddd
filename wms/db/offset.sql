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
-- Move the offset if nobody else has moved it: the fence against a consumer that lost its partition.
update consumer_offset set next_offset = $6, moved_at = now()
where cluster_id = $1 and consumer = $2 and topic = $3 and partition = $4 and next_offset = $5;
