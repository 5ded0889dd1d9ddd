-- name: record
-- Store a range of a log that a consumer does not handle, with the time when it had handled all before; nothing if it is stored already.
insert into log_gap (cluster_id, consumer, topic, partition, cause, first_offset, until_offset, goes_on_at, handled_at)
select $1, $2, $3, $4, $5, $6, $7, $8, (
    select moved_at from consumer_offset where cluster_id = $1 and consumer = $2 and topic = $3 and partition = $4
)
on conflict do nothing;

-- name: restored
-- The ranges of a consumer's partitions whose messages are kept aside, as they were sent before the database was restored.
select g.log_gap_id, g.partition, g.until_offset, g.handled_at
from log_gap g join consumer_offset o using (cluster_id, consumer, topic, partition)
where g.cluster_id = $1 and g.consumer = $2 and g.topic = $3 and g.partition = any ($4::integer[])
  and g.cause = 'restored' and g.until_offset > o.next_offset;

-- name: page
-- Gaps that no operator has looked at, or with $2 all, newest first: with how many messages were kept aside, and are still.
select g.log_gap_id, g.cluster_id, g.consumer, g.topic, g.partition, g.cause, g.first_offset, g.until_offset, g.handled_at, g.goes_on_at,
       g.seen_at, g.acknowledged_at, k.kept, k.undecided, g.cause = 'restored' and coalesce(o.next_offset, 0) < g.until_offset as is_read
from log_gap g left join consumer_offset o using (cluster_id, consumer, topic, partition)
cross join lateral (
    select count(*) as kept, count(*) filter (where replay_requested_at is null and replayed_at is null) as undecided
    from dead_letter d where d.log_gap_id = g.log_gap_id
) k
where g.acknowledged_at is null or $2
order by g.log_gap_id desc limit $1;

-- name: kept
-- The messages that were kept aside for these gaps, in their order, each with the beginning of its payload.
select dead_letter_id, log_gap_id, partition, message_offset, principal ->> 'owner' as sender, sent_at, octet_length(payload) as size,
       substring(payload for $2) as beginning, error, replay_requested_at, replayed_at
from dead_letter where log_gap_id = any ($1::bigint[]) order by dead_letter_id;

-- name: undecided
-- The ids of messages that are kept aside for these gaps, of one sender or with an empty $2 of all; without those to be taken in already.
select dead_letter_id from dead_letter
where log_gap_id = any ($1::bigint[]) and ($2 = '' or principal ->> 'owner' = $2)
  and replay_requested_at is null and replayed_at is null
order by dead_letter_id;

-- name: unacknowledged
-- Which of these gaps no operator has looked at.
select log_gap_id from log_gap where log_gap_id = any ($1::bigint[]) and acknowledged_at is null order by log_gap_id;

-- name: acknowledge
-- Store that an operator has looked at these gaps: those without messages that are yet to be read, taken in or dropped.
update log_gap g set acknowledged_at = now()
where g.log_gap_id = any ($1::bigint[]) and g.acknowledged_at is null
  and not exists (select from dead_letter d where d.log_gap_id = g.log_gap_id and d.replay_requested_at is null and d.replayed_at is null)
  and not exists (select from consumer_offset o where o.cluster_id = g.cluster_id and o.consumer = g.consumer and o.topic = g.topic
                                                  and o.partition = g.partition and g.cause = 'restored' and o.next_offset < g.until_offset)
returning g.log_gap_id;
