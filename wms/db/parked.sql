-- name: park
-- Store messages for later; the offsets of their partitions move past them.
insert into parked_message (cluster_id, consumer, topic, partition, message_offset, owner, key, payload, principal)
select $1, $2, $3, m.partition, m.message_offset, m.owner, m.key, m.payload, m.principal::jsonb
from unnest($4::integer[], $5::bigint[], $6::text[], $7::bytea[], $8::bytea[], $9::text[])
     as m(partition, message_offset, owner, key, payload, principal);

-- name: waiting
-- The number and bytes of parked messages by partition and owner.
select partition, owner, count(*) as messages, sum(octet_length(payload))::bigint as bytes
from parked_message where consumer = $1 and partition = any ($2::integer[])
group by partition, owner;

-- name: first
-- The oldest messages of an owner and partition, up to $5 bytes; the first is taken whatever its size.
select parked_id, cluster_id, topic, partition, message_offset, key, payload, principal,
       taken_by is not null and taken_by <> $6
       and not exists (select from service_instance i
                       where i.instance_id = taken_by and i.heartbeat_at > now() - make_interval(secs => $7)) as is_suspect,
       taken_alone, deaths + 1 as deaths
from (
    select *, sum(octet_length(payload)) over (order by parked_id) as so_far, row_number() over (order by parked_id) as place
    from (
        select * from parked_message where consumer = $1 and partition = $2 and owner = $3 order by parked_id limit $4
    ) as head
) as headed
where so_far <= $5 or place = 1
order by parked_id;

-- name: remove
-- Delete messages in the transaction that handles them. Messages that another instance has handled are not returned.
delete from parked_message where parked_id = any ($1::bigint[]) returning parked_id;

-- name: take
-- Store which instance handles messages that take long.
update parked_message set taken_by = $2, taken_alone = cardinality($1::bigint[]) = 1, deaths = $3 where parked_id = any ($1::bigint[]);
