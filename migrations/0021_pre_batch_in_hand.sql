-- What a consumer has had in hand for longer than usual: if its process dies, its successor takes these messages one by one.

create table batch_in_hand (
    consumer text not null,
    cluster_id text not null,
    topic text not null,
    partition integer not null,
    first_offset bigint not null,
    last_offset bigint not null,
    instance_id text not null,
    noted_at timestamptz not null default now(),
    primary key (consumer, cluster_id, topic, partition)
);
comment on table batch_in_hand is 'Messages that a consumer has had in hand for longer than usual; a note that outlives its instance names what that may have died of.';
