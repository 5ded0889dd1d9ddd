-- name: now
-- The time of the transaction's start.
select now();

-- name: post
-- Put messages for one topic into the outbox.
insert into outbox (topic, keys, payloads) values ($1, $2, $3) returning outbox_id;
