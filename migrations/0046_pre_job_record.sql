-- What the broker does with each brokered job, and has found: the ranking, the agreements, the reason why it is not placed.

create table job_record (
    job_id bigint primary key references job on delete cascade,
    -- The number of the job's move to Checking that the record answers; a later one begins anew.
    seq integer not null,
    phase text not null default 'Choosing'
        constraint job_record_phase check (phase = any (array['Choosing', 'Deciding', 'Confirming', 'Placed', 'Over'])),
    -- Since when placements that failed count: before that the job was another, or its user tried again.
    since timestamptz not null default now(),
    -- How often sites were asked for agreements; agreement ids are made of it.
    round integer not null default 0,
    -- Agreements that were asked for and not settled yet, the best first.
    asked text[] not null default '{}',
    -- When the next step is due, who does it, until when, and how many began this one.
    due_at timestamptz not null default now(),
    claimed_by text,
    claimed_until timestamptz,
    tries integer not null default 0,
    ranking jsonb not null default '[]',
    ranked_at timestamptz,
    reason text not null default '',
    reason_text text not null default '',
    created_at timestamptz not null default now(),
    changed_at timestamptz not null default now()
) with (fillfactor = 70);
comment on table job_record is 'The broker''s record of a brokered job; it is deleted with the job.';
create index job_record_due on job_record (due_at) where phase in ('Choosing', 'Deciding', 'Confirming');
create index job_record_placed on job_record (job_id) where phase = 'Placed';
