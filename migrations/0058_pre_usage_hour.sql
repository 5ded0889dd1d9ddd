-- What jobs used, by hour, owner and site: sums of the attempts that ended in it, which outlive the jobs.

create table usage_hour (
    hour timestamptz not null,
    vo text not null,
    owner_group text not null,
    owner text not null,
    site text not null,
    outcome text not null,
    reason text not null,
    attempts bigint not null,
    cpu_seconds double precision not null,
    wall_seconds double precision not null,
    slot_seconds double precision not null,
    max_rss_bytes bigint not null,
    rss_byte_seconds double precision not null,
    primary key (hour, vo, owner_group, owner, site, outcome, reason)
);
comment on table usage_hour is 'Usage of attempts that ended in an hour that is over. Slot seconds are wall seconds by processors, byte seconds wall seconds by the most memory.';

create table usage_rollup (
    one boolean primary key default true constraint usage_rollup_one check (one),
    began_at timestamptz not null,
    closed_until timestamptz not null
);
comment on table usage_rollup is 'The hours that usage_hour has, from the first to before the last; what ended since is in the attempts alone.';
insert into usage_rollup (began_at, closed_until)
select began_at, began_at from (
    select date_trunc('hour', coalesce(min(ended_at), now()), 'UTC') as began_at from ended_attempt
) first;

create function processors_of(requirements jsonb) returns integer language sql immutable parallel safe as $$
    select coalesce(max((regexp_match(tag, '^([1-9][0-9]{0,3})processors$', 'i'))[1]::integer), 1)
    from jsonb_array_elements_text(case jsonb_typeof(requirements -> 'tags') when 'array' then requirements -> 'tags' else '[]' end) as tag
$$;
comment on function processors_of is 'The processors that the tags of a task queue ask for.';
