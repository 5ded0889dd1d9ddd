-- Job groups: a name that its user gives to jobs that belong together, whatever they are called.

alter table job add column job_group text not null default '';
comment on column job.job_group is 'Said at submission; empty: none.';
alter table sweep add column job_group text not null default '';
comment on column sweep.job_group is 'That of all its jobs.';

-- A pilot may be asked to stop a job that is to be held.
alter table job drop constraint job_stop_requested_check;
alter table job add constraint job_stop_requested_check check (stop_requested in ('', 'kill', 'reschedule', 'hold'));
