-- name: beat
-- Store the heartbeat and the health of this instance.
insert into service_instance (instance_id, service, consumers, host, pid, version, health)
values ($1, $2, $3, $4, $5, $6, $7::text::jsonb)
on conflict (instance_id) do update set heartbeat_at = now(), health = excluded.health, consumers = excluded.consumers;

-- name: hear
-- Store the heartbeats of advertisers. Another process of the same owner begins its row anew. They read nothing, so they share no partitions.
insert into service_instance as known (instance_id, service, consumers, host, pid, version, health)
select told.instance_id, $1, array[]::text[], told.host, told.pid, told.version, told.health::jsonb
from unnest($2::text[], $3::text[], $4::int[], $5::text[], $6::text[]) as told(instance_id, host, pid, version, health)
on conflict (instance_id) do update set
    heartbeat_at = now(), health = excluded.health, host = excluded.host, pid = excluded.pid, version = excluded.version,
    started_at = case when (known.host, known.pid) = (excluded.host, excluded.pid) then known.started_at else now() end;

-- name: sharers
-- The live instances of each consumer, in the same order for all callers.
select c.consumer, array_agg(i.instance_id order by i.instance_id) as instances
from service_instance i cross join unnest(i.consumers) as c(consumer)
where i.heartbeat_at > now() - make_interval(secs => $1)
group by c.consumer;

-- name: end_silent
-- End the transactions of instances without a recent heartbeat, such as a process that is stopped, so that their locks are free. Postgres
-- lets a role end sessions of its own alone.
select a.application_name as instance_id, pg_terminate_backend(a.pid) as ended
from service_instance i join pg_stat_activity a on a.application_name = i.instance_id and a.usename = current_user
where i.heartbeat_at < now() - make_interval(secs => $1) and a.xact_start < now() - make_interval(secs => $1);

-- name: leave
-- Delete this instance: the others take its partitions at their next heartbeat.
delete from service_instance where instance_id = $1;

-- name: forget
-- Delete instances that died long ago.
delete from service_instance where heartbeat_at < now() - make_interval(secs => $1);

-- name: all
-- Every stored instance, for `wms status`.
select instance_id, service, host, pid, version, started_at, heartbeat_at, health,
       heartbeat_at > now() - make_interval(secs => case service when $2 then $3::float8 else $1::float8 end) as alive
from service_instance order by service, started_at;
