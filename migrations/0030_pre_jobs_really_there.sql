-- Limits that hold for the jobs that are really there: what an ad's source counts, and what it cannot have seen yet.

alter table limit_counter
    add column unseen integer not null default 0 check (unseen >= 0),
    add column idle integer not null default 0 check (idle >= 0);
comment on column limit_counter.unseen is 'Pilots that were under way when the ad''s source looked: counted as sent since.';
comment on column limit_counter.idle is 'Pilots that the ad''s source counts as jobs and that had none: a job for each brings no more there.';
