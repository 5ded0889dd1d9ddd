-- name: note
-- Note that this instance handles these messages for long; each partition keeps the last note.
insert into batch_in_hand (consumer, cluster_id, topic, partition, first_offset, last_offset, instance_id, deaths)
select $1, $2, $3, m.partition, m.first_offset, m.last_offset, $7, $8
from unnest($4::integer[], $5::bigint[], $6::bigint[]) as m(partition, first_offset, last_offset)
on conflict (consumer, cluster_id, topic, partition) do update
set first_offset = excluded.first_offset, last_offset = excluded.last_offset, instance_id = excluded.instance_id, deaths = excluded.deaths,
    noted_at = now();

-- name: forget
-- Delete the notes of this instance after the messages were handled.
delete from batch_in_hand
where consumer = $1 and cluster_id = $2 and topic = $3 and partition = any ($4::integer[]) and instance_id = $5;

-- name: left
-- The messages that instances without a recent heartbeat noted before they died.
select n.partition, n.first_offset, n.last_offset, n.deaths + 1 as deaths
from batch_in_hand n
where n.consumer = $1 and n.cluster_id = $2 and n.topic = $3 and n.partition = any ($4::integer[]) and n.instance_id <> $5
  and not exists (select from service_instance i
                  where i.instance_id = n.instance_id and i.heartbeat_at > now() - make_interval(secs => $6));
