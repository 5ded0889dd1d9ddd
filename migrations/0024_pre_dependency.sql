-- Jobs that start after others have ended: one row for all jobs of a submission that wait for the same ones, a million or one.

create table dependency (
    dependency_id bigint generated always as identity primary key,
    -- Who waits. A job that its user lets go, or gives other predecessors, is in it no more.
    jobs int8multirange not null check (not isempty(jobs)),
    predecessors int8multirange not null,
    -- Those of them of which any end is enough; the others must be Done.
    any_end int8multirange not null,
    -- Those whose outputs the jobs get.
    outputs_of int8multirange not null,
    -- What is left of the predecessors behind the first that has not ended as it must.
    pending int8multirange not null,
    -- One that has ended otherwise, if the jobs were told of it.
    failed bigint,
    made_at timestamptz not null default now()
);
create index dependency_jobs on dependency using gist (jobs);
create index dependency_predecessors on dependency using gist (predecessors);
comment on table dependency is 'Jobs that are Held until others have ended; gone once they have.';
