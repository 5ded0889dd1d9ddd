-- Owners take turns at the broker: nobody waits for the many jobs of another.

alter table job_record add column owner text not null default '';
comment on column job_record.owner is 'The owner of the job, which never changes.';
update job_record r set owner = j.owner from job j where j.job_id = r.job_id;
drop index job_record_due;
create index job_record_due on job_record (owner, due_at) where phase in ('Choosing', 'Deciding', 'Confirming');
