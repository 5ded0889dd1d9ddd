-- What was predicted of each placement, and what happened: how true predictors are, and the history that they learn from.

create table prediction (
    job_id bigint not null,
    attempt integer not null,
    part text not null
        constraint prediction_part check (part = any (array['stage_in', 'waiting', 'execution', 'stage_out', 'delivery'])),
    site text not null,
    ce text not null,
    source text not null,
    -- Jobs whose run times tell of each other's.
    class text not null default '',
    -- The size of the files that are to come or go, where it is known.
    bytes bigint,
    seconds double precision not null check (seconds >= 0),
    low double precision not null check (low >= 0),
    high double precision not null check (high >= low),
    -- Before it was corrected by how wrong such predictions were.
    model_seconds double precision not null check (model_seconds >= 0),
    made_at timestamptz not null default now(),
    -- What it took; null once scored: nothing can be told, since the placement did not come so far.
    actual double precision check (actual >= 0),
    scored_at timestamptz,
    primary key (job_id, attempt, part)
);
comment on table prediction is 'One row for each part of a placement; kept for a while beyond its job.';
create index prediction_unscored on prediction (job_id, attempt) where scored_at is null;
create index prediction_of_class on prediction (class, made_at desc) where part = 'execution' and actual is not null;
create index prediction_age on prediction (made_at);
