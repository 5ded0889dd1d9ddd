-- The mark of this system in the names of its pilots: a batch system that lists a pilot with it lists one of ours, even if no
-- row is left of it; and other systems' pilots under the same account are none of ours.

create table system_mark (
    single boolean primary key default true check (single),
    mark text not null check (mark ~ '^[0-9a-f]{8}$')
);
insert into system_mark (mark) values (left(gen_random_uuid()::text, 8));
comment on table system_mark is 'One row: by what this system knows its pilots in the listings of batch systems.';
