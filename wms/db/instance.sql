-- name: beat
-- Say that this instance lives, and how it does.
insert into service_instance (instance_id, service, consumers, host, pid, version, health)
values ($1, $2, $3, $4, $5, $6, $7::text::jsonb)
on conflict (instance_id) do update set heartbeat_at = now(), health = excluded.health, consumers = excluded.consumers;

-- name: sharers
-- The live instances of each consumer, in one order for everybody.
select c.consumer, array_agg(i.instance_id order by i.instance_id) as instances
from service_instance i cross join unnest(i.consumers) as c(consumer)
where i.heartbeat_at > now() - make_interval(secs => $1)
group by c.consumer;

-- name: leave
-- This instance is gone: its partitions are the others' at their next beat.
delete from service_instance where instance_id = $1;

-- name: forget
-- Instances that died without a word, long ago.
delete from service_instance where heartbeat_at < now() - make_interval(secs => $1);

-- name: all
-- Every instance known, for `wms status`.
select instance_id, service, host, pid, version, started_at, heartbeat_at, health,
       heartbeat_at > now() - make_interval(secs => $1) as alive
from service_instance order by service, started_at;
