-- Agreements on reservations of CPUs, and the turns by which services decide on them. All times are the database's.

create table agreement (
    agreement_id text primary key,
    job_id bigint not null,
    vo text not null,
    owner text not null,
    "group" text not null,
    site text not null,
    ce text not null,
    cpus integer not null check (cpus > 0),
    duration_seconds double precision not null check (duration_seconds > 0),
    earliest_start timestamptz,
    latest_start timestamptz,
    flexible boolean not null,
    expires_in_seconds double precision not null check (expires_in_seconds > 0),
    state text not null default 'Requested',
    start_at timestamptz,
    ends_at timestamptz,
    -- The name that the batch system knows the reservation by; empty: none.
    reservation text not null default '',
    -- Whether the batch system may hold something for it: set before it is asked, cleared once it has removed the reservation.
    is_held boolean not null default false,
    -- When an undecided offer, or an unconfirmed reservation, is over.
    expires_at timestamptz not null,
    -- When it was first seen that the reservation is used.
    used_at timestamptz,
    tries integer not null default 0,
    code text not null default '',
    text text not null default '',
    created_at timestamptz not null default now(),
    changed_at timestamptz not null default now(),
    -- Made from the state table (wms/agreement/state.py); a test holds them equal.
    constraint agreement_state check (state = any (array['Requested', 'Temporary', 'Confirmed', 'Denied', 'Cancelled', 'Expired',
        'NoShow', 'Ended'])),
    constraint agreement_granted check (state not in ('Temporary', 'Confirmed') or (start_at is not null and ends_at > start_at))
) with (fillfactor = 70);
comment on table agreement is 'Every offer to reserve CPUs, and what became of it.';
create index agreement_alive on agreement (site, ce, created_at) where state in ('Requested', 'Temporary', 'Confirmed');
create index agreement_held on agreement (site, ce) where is_held;
create index agreement_of_job on agreement (job_id);
create index agreement_over on agreement (changed_at) where state not in ('Requested', 'Temporary', 'Confirmed');

create table agreement_element (
    site text not null,
    ce text not null,
    -- The CPUs that may be reserved at a time, and the bounds of offers.
    cpus integer not null,
    template jsonb not null,
    -- Until when the site is taken to decide on offers.
    told_until timestamptz not null,
    -- Who decides on the element's offers, and until when; from then on anybody may.
    holder text not null default '',
    held_until timestamptz not null default '-infinity',
    turns bigint not null default 0,
    primary key (site, ce)
);
comment on table agreement_element is 'Computing elements on which reservations are made; one service at a time decides for each.';
