-- What a pilot printed at its end, fetched once from its computing element and kept for people to read.

alter table pilot add column output text;
comment on column pilot.output is 'The end of what it printed; null until fetched, empty if there was nothing.';

create index pilot_unfetched on pilot (ended_at) where ended_at is not null and output is null;
