-- name: bury
-- Keep a message that could not be handled; the same one is kept once.
insert into dead_letter (consumer, cluster_id, topic, partition, message_offset, key, payload, principal, error)
values ($1, $2, $3, $4, $5, $6, $7, $8::text::jsonb, $9)
on conflict do nothing;

-- name: all
-- The dead letters, newest first.
select dead_letter_id, consumer, topic, partition, message_offset, key, payload, principal, error, arrived_at,
       replay_requested_at, replayed_at
from dead_letter where replayed_at is null or $2 order by dead_letter_id desc limit $1;

-- name: ask_replay
-- Ask the consumer to try these again.
update dead_letter set replay_requested_at = now()
where replayed_at is null and (dead_letter_id = any ($1::bigint[]) or $2);

-- name: to_replay
-- One dead letter of this consumer that is to be tried again.
select dead_letter_id, topic, partition, message_offset, key, payload, principal from dead_letter
where consumer = $1 and replay_requested_at is not null and replayed_at is null
order by dead_letter_id limit 1 for update skip locked;

-- name: replayed
-- It worked this time.
update dead_letter set replayed_at = now() where dead_letter_id = $1;

-- name: replay_failed
-- It did not work this time either.
update dead_letter set replay_requested_at = null, error = $2 where dead_letter_id = $1 and replayed_at is null;
