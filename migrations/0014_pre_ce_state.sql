-- How computing elements are, who said so and why; what the planner last decided of each; and how long pilots live.

create table ce_state (
    site text not null,
    -- Empty: the site with all its elements.
    ce text not null,
    state text not null check (state in ('healthy', 'backing-off', 'quarantined', 'probing', 'banned', 'draining')),
    since timestamptz not null default now(),
    -- Until then it is left alone, or its canary waited for. Null: until somebody says otherwise.
    until timestamptz,
    reason text not null default '',
    said_by text not null default '',
    relapses integer not null default 0 check (relapses >= 0),
    primary key (site, ce)
) with (fillfactor = 50);
comment on table ce_state is 'How sites and computing elements are; one that is not here is healthy.';

create table ce_move (
    ce_move_id bigint generated always as identity primary key,
    at timestamptz not null default now(),
    site text not null,
    ce text not null,
    before text not null,
    event text not null,
    state text not null,
    reason text not null default '',
    -- An operator, or the service that judged.
    said_by text not null default ''
);
create index ce_move_by_place on ce_move (site, ce, ce_move_id);
comment on table ce_move is 'Every change of how an element is, with who, when and why: append only.';

create table canary (
    job_id bigint primary key,
    site text not null,
    ce text not null,
    sent_at timestamptz not null default now(),
    -- An operator, or empty where the system wanted to know.
    asked_by text not null default '',
    outcome text check (outcome in ('Done', 'Failed', 'Killed', 'late')),
    ended_at timestamptz,
    check ((outcome is null) = (ended_at is null))
) with (fillfactor = 50);
create unique index canary_open on canary (site, ce) where outcome is null;
comment on table canary is 'The system''s own jobs, by which elements are tried; one at a time each.';

create table ce_plan (
    site text not null,
    ce text not null,
    decided_at timestamptz not null default now(),
    decision jsonb not null,
    primary key (site, ce)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
comment on table ce_plan is 'What the planner last decided of each element, and why: written when it changes.';

alter table pilot add column lifetime_seconds double precision;
comment on column pilot.lifetime_seconds is 'After so long from its start it takes no more jobs; null if nobody said.';
create index pilot_by_end on pilot (ended_at) where ended_at is not null;

-- What fails at once is rare where all is well, and found by these rows alone; what ended of late is looked at only then.
create index ended_attempt_quick on ended_attempt (ended_at)
    where outcome in ('failed', 'lost') and ended_at - coalesce(started_at, accepted_at) < interval '60 s';
create index ended_attempt_by_end on ended_attempt using brin (ended_at) with (autosummarize = on);
