-- How pilots isolate the payloads of their jobs.
alter table pilot add column isolation text not null default '';
comment on column pilot.isolation is 'How the pilot isolates payloads, as it reported: namespaces or none; empty: it never reported.';
