-- What each pilot offers, so that it is counted only for work that it could take; and when limits stated by ads must be read anew.

alter table pilot
    add column resource text not null default '',
    add column asks text not null default '',
    add column unfit text[] not null default '{}',
    add column free_memory_mb integer check (free_memory_mb >= 0);
comment on column pilot.resource is 'What it was sent to offer, as JSON of wms.site.Resource; empty: as its element''s ad says.';
comment on column pilot.asks is 'The class of hosts that it asked its element for; empty: none in particular.';
comment on column pilot.unfit is 'Requirements that it found its node not to do for, as wms.matching.node_facts names them.';
comment on column pilot.free_memory_mb is 'What it has left for jobs, as it said last; null: it never said.';

-- Rises whenever an element begins to state a limit in its ad. Whoever gives jobs or pilots to elements holds the lock shared until
-- the end of its transaction; whoever brings such an ad holds it alone. So nobody gives what the ad does not count.
create sequence limit_generation;

create function limits_known(generation bigint) returns boolean language plpgsql volatile as $$
begin
    perform pg_advisory_xact_lock_shared(7107);
    return generation = (select last_value from limit_generation);
end
$$;
comment on function limits_known is 'Whether no element began to state a limit since that generation, nor does before this transaction ends.';
