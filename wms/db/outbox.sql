-- name: delete
-- Delete acknowledged messages, without waiting for the disk: a row that a crash restores is sent twice, which is allowed.
with lazily as materialized (select set_config('synchronous_commit', 'off', true))
delete from outbox using lazily where outbox_id = any ($1::bigint[]);

-- name: take_due
-- Take messages that were not sent in time, by any relay. Several relays share them; each row is reserved for $2 seconds.
with due as (
    select outbox_id from outbox where due_at < now() order by outbox_id limit $1 for update skip locked
)
update outbox o set due_at = now() + make_interval(secs => $2) from due d where o.outbox_id = d.outbox_id
returning o.outbox_id, o.topic, o.keys, o.payloads;
