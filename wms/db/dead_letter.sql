-- name: bury
-- Store a message that could not be handled, unless it is stored already.
insert into dead_letter (consumer, cluster_id, topic, partition, message_offset, key, payload, principal, error, sent_at, log_gap_id)
values ($1, $2, $3, $4, $5, $6, $7, $8::text::jsonb, $9, $10, $11)
on conflict do nothing;

-- name: page
-- The dead letters, newest first, each with the beginning of its payload.
select dead_letter_id, consumer, topic, partition, message_offset, octet_length(payload) as size,
       substring(payload for $5) as beginning, principal ->> 'owner' as sender, error, arrived_at,
       extract(epoch from now() - arrived_at)::float8 as age, replay_requested_at, replayed_at
from dead_letter
where (replayed_at is null or $3) and ($2::bigint is null or dead_letter_id < $2) and ($4 = '' or consumer = $4)
order by dead_letter_id desc limit $1;

-- name: whole
-- Dead letters with all stored columns.
select dead_letter_id, consumer, cluster_id, topic, partition, message_offset, key, payload, principal, error, arrived_at,
       replay_requested_at, replayed_at
from dead_letter where dead_letter_id = any ($1::bigint[]) order by dead_letter_id;

-- name: lock
-- Lock dead letters until the end of the transaction; returns those that are there and, with $2, not replayed yet.
select dead_letter_id from dead_letter
where dead_letter_id = any ($1::bigint[]) and (replayed_at is null or not $2) order by dead_letter_id for update;

-- name: ask_replay
-- Mark dead letters for replay by their consumer.
update dead_letter set replay_requested_at = now()
where replayed_at is null and dead_letter_id = any ($1::bigint[]) returning dead_letter_id;

-- name: to_replay
-- One dead letter of this consumer that is marked for replay, locked.
select dead_letter_id, topic, partition, message_offset, key, payload, principal from dead_letter
where consumer = $1 and replay_requested_at is not null and replayed_at is null
order by dead_letter_id limit 1 for update skip locked;

-- name: replayed
-- Store that the replay succeeded.
update dead_letter set replayed_at = now() where dead_letter_id = $1;

-- name: replay_failed
-- Store that the replay failed, and clear the mark. A message that was kept aside is a letter as others then.
update dead_letter set replay_requested_at = null, log_gap_id = null, error = $2 where dead_letter_id = $1 and replayed_at is null;

-- name: drop
-- Delete dead letters on request; returns a summary of each.
delete from dead_letter where dead_letter_id = any ($1::bigint[])
returning dead_letter_id, format('letter %s: %s, %s/%s@%s, %s bytes: %s', dead_letter_id, consumer, topic, partition,
                                 message_offset, octet_length(payload), error) as summary;

-- name: forget
-- Delete dead letters that arrived long ago, replayed or not; not those that are kept aside until an operator decides.
delete from dead_letter where arrived_at < now() - make_interval(secs => $1) and (log_gap_id is null or replayed_at is not null);

-- name: bound_senders
-- Delete the oldest letters beyond the room of one sender, or of all unverified senders together: $1 letters, $2 bytes.
with sized as (
    select dead_letter_id, row_number() over w as letters, sum(octet_length(payload) + 1024) over w as bytes
    from dead_letter where log_gap_id is null window w as (partition by principal ->> 'owner' order by dead_letter_id desc)
)
delete from dead_letter d using sized s
where d.dead_letter_id = s.dead_letter_id and (s.letters > $1 or s.bytes > $2);

-- name: bound_all
-- Delete the oldest letters beyond the total room: $1 letters, $2 bytes.
with sized as (
    select dead_letter_id, row_number() over w as letters, sum(octet_length(payload) + 1024) over w as bytes
    from dead_letter where log_gap_id is null window w as (order by dead_letter_id desc)
)
delete from dead_letter d using sized s
where d.dead_letter_id = s.dead_letter_id and (s.letters > $1 or s.bytes > $2);
