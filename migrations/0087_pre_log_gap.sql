-- Ranges of a log that a consumer did not handle: named until an operator has looked at them.

create table log_gap (
    log_gap_id bigint generated always as identity primary key,
    cluster_id text not null,
    consumer text not null,
    topic text not null,
    partition integer not null,
    cause text not null check (cause in ('deleted', 'begun anew', 'restored')),
    first_offset bigint not null,
    -- Null where the log begins again: nothing tells where the one before it ended.
    until_offset bigint check (until_offset > first_offset),
    handled_at timestamptz,
    goes_on_at timestamptz,
    seen_at timestamptz not null default now(),
    acknowledged_at timestamptz,
    unique (cluster_id, consumer, topic, partition, cause, first_offset)
);
comment on table log_gap is 'Ranges of offsets that a consumer did not handle: deleted before it read them, or meant for a state of the database that a restore undid.';
comment on column log_gap.handled_at is 'When the consumer had handled all messages before the gap.';
comment on column log_gap.goes_on_at is 'When the first message behind the gap was sent.';

alter table dead_letter add column log_gap_id bigint references log_gap;
alter table dead_letter add column sent_at timestamptz;
comment on column dead_letter.log_gap_id is 'The gap for which the message was kept aside; null if it failed.';
create index dead_letter_by_gap on dead_letter (log_gap_id) where log_gap_id is not null;
