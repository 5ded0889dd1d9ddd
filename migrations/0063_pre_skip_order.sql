-- Operators' orders to skip a message that blocks its partition, until a job manager has carried them out.

create table skip_order (
    skip_order_id bigint generated always as identity primary key,
    operator text not null,
    cluster_id text not null,
    consumer text not null,
    topic text not null,
    partition integer not null,
    message_offset bigint not null,
    reason text not null,
    ordered_at timestamptz not null default now(),
    attempts integer not null default 0,
    claimed_until timestamptz,
    unique (cluster_id, consumer, topic, partition, message_offset)
);
comment on table skip_order is 'Messages that operators ordered to be skipped. A row is deleted when that is done, or has failed for good; operator_order tells which.';
