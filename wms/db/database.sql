-- name: now
-- The time of the transaction's start.
select now();

-- name: post
-- Put messages into the outbox, one row for each topic. All keys and payloads come in one array; each topic has those from `low` to
-- `high`.
insert into outbox (topic, keys, payloads)
select t.topic, ($4::bytea[])[t.low:t.high], ($5::bytea[])[t.low:t.high]
from unnest($1::text[], $2::integer[], $3::integer[]) as t(topic, low, high)
returning outbox_id, topic;
