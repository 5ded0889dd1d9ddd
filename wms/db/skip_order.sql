-- name: put
-- Store an order to skip a message, unless that message is to be skipped already.
insert into skip_order (operator, cluster_id, consumer, topic, partition, message_offset, reason)
values ($1, $2, $3, $4, $5, $6, $7) on conflict do nothing;

-- name: claim
-- Claim the oldest order of a cluster that nobody works on, for $2 seconds.
update skip_order set attempts = attempts + 1, claimed_until = now() + make_interval(secs => $2)
where skip_order_id = (
    select skip_order_id from skip_order where cluster_id = $1 and (claimed_until is null or claimed_until < now())
    order by attempts, skip_order_id limit 1 for update skip locked
)
returning skip_order_id, operator, consumer, topic, partition, message_offset, reason, attempts;

-- name: finish
-- Delete an order.
delete from skip_order where skip_order_id = $1;

-- name: forget
-- Delete orders of long ago, which no job manager carried out.
delete from skip_order where ordered_at < now() - make_interval(secs => $1);
