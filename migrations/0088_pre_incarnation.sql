-- A database that was restored to an earlier state, or takes another's place at a log, begins a new incarnation.

create table incarnation (
    number integer primary key,
    incarnation_id text not null unique,
    began_at timestamptz not null default now(),
    -- Rises with each mark in the log: a mark with a higher age tells of what a restore undid.
    age bigint not null default 0,
    marked_at timestamptz not null default now(),
    cluster_id text not null default '',
    -- The marks of this cluster before this offset are known.
    known_until bigint not null default 0,
    predecessor text not null default ''
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
comment on table incarnation is 'The incarnations of this database; the one with the highest number is the present one.';
comment on column incarnation.predecessor is 'The incarnation of the last mark in the log when this one began; empty for the first.';
