-- What may be ruled while the system runs: shares, limits, and what is counted for them.

create table share (
    vo text not null,
    owner_group text not null,
    -- What was set at run time holds; without it what the matchers' file says.
    source text not null check (source in ('file', 'set')),
    job_share double precision not null check (job_share >= 0),
    job_sharing boolean not null,
    background boolean not null,
    said_by text not null default '',
    said_at timestamptz not null default now(),
    primary key (vo, owner_group, source)
);
comment on table share is 'What groups of VOs are entitled to; a group that is not here has the default share.';

create table owner_usage (
    vo text not null,
    owner_group text not null,
    owner text not null,
    -- Decayed to the moment `at`; what it is later is a formula, not an update.
    slot_seconds double precision not null check (slot_seconds >= 0),
    at timestamptz not null,
    primary key (vo, owner_group, owner)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
comment on table owner_usage is 'Wall time by processors of ended attempts, halved every half-life.';

create table limit_rule (
    source text not null check (source in ('file', 'set')),
    kind text not null check (kind in ('running', 'rate', 'waiting')),
    -- Empty: all places together. '*': each by itself.
    site text not null,
    ce text not null,
    attribute text not null,
    value text not null,
    -- None: what the file says of the same is lifted.
    most integer check (most >= 0),
    per_second double precision check (per_second > 0),
    said_by text not null default '',
    said_at timestamptz not null default now(),
    primary key (kind, site, ce, attribute, value, source)
);
comment on table limit_rule is 'Limits on running jobs, on how fast they are matched, and on how many wait.';

create table limit_counter (
    counter_id bigint generated always as identity primary key,
    site text not null,
    ce text not null,
    attribute text not null,
    value text not null,
    running integer not null default 0 check (running >= 0),
    tokens double precision not null default 0,
    refilled_at timestamptz,
    -- A matcher was turned away: who makes room tells them.
    awaited boolean not null default false,
    unique (site, ce, attribute, value)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500,
        autovacuum_vacuum_cost_delay = 0);
comment on table limit_counter is 'What some limit counts: its row is locked by whoever claims or gives back.';

alter table lease add column counted bigint[];
comment on column lease.counted is 'The counters that this lease is counted by; none where no limit names it.';

create table waiting_room (
    attribute text not null,
    value text not null,
    -- At most so many jobs more may wait than did when they were counted, those since submitted taken off.
    room bigint not null,
    counted_at timestamptz not null,
    primary key (attribute, value)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
comment on table waiting_room is 'Room left under a limit on waiting jobs: never more than there is.';
