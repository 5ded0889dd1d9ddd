-- Files by URL: how fast they came and went, and how far those of running attempts are.

create table transfer (
    transfer_id bigint generated always as identity primary key,
    site text not null,
    -- The storage at the other end.
    host text not null,
    part text not null constraint transfer_part check (part = any (array['stage_in', 'stage_out'])),
    bytes bigint not null check (bytes > 0),
    seconds double precision not null check (seconds > 0),
    at timestamptz not null default now()
);
comment on table transfer is 'What attempts measured of the way between a site and a storage host; kept for a while.';
create index transfer_age on transfer (at);
create index transfer_way on transfer (site, part, host, at desc);

alter table lease add column staging jsonb;
comment on column lease.staging is 'How far its transfers are, as its pilot said last; null if none runs.';
