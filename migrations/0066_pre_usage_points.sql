-- What an attempt used over time: a bounded number of points, as its pilot sampled them.

alter table lease add column usage_points jsonb;
comment on column lease.usage_points is 'Points of seconds since its payload began, CPU milliseconds until then, and KiB of memory then.';
alter table ended_attempt add column usage_points jsonb;
comment on column ended_attempt.usage_points is 'The points that its lease had.';
