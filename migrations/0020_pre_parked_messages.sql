-- Messages that wait for their owners' turn, off the log: others behind them in their partition need not wait for them.

create table parked_message (
    parked_id bigint generated always as identity primary key,
    cluster_id text not null,
    consumer text not null,
    topic text not null,
    partition integer not null,
    message_offset bigint not null,
    owner text not null,
    key bytea,
    payload bytea not null,
    principal jsonb,
    parked_at timestamptz not null default now(),
    taken_by text,
    taken_alone boolean not null default false,
    unique (consumer, cluster_id, topic, partition, message_offset)
) with (vacuum_truncate = false, toast.vacuum_truncate = false);
alter table parked_message alter column payload set storage external;
create index parked_message_turn on parked_message (consumer, partition, owner, parked_id);
comment on table parked_message is 'Messages that wait for their owners'' turn, with the identity verified when they came; never a token.';
comment on column parked_message.taken_by is 'The instance that has had it in hand for longer than usual; one that died so may have died of it.';
comment on column parked_message.taken_alone is 'Whether it had no other message in hand with it.';
