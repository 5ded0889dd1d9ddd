-- Pilots that are bound to one job, for a placement of the broker.

alter table pilot add column job_id bigint;
comment on column pilot.job_id is 'The one job that it may be given; null: any that fits.';
create index pilot_bound on pilot (job_id) where job_id is not null and ended_at is null;

alter table placement add column walltime_seconds double precision check (walltime_seconds > 0);
comment on column placement.walltime_seconds is 'For so long its pilot asks of the batch system, such as the length of its reservation; null: as the job says.';
