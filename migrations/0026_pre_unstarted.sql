-- Times that a job was handed out to pilots that took it and lost it before its payload began.

alter table job add column unstarted smallint not null default 0;
comment on column job.unstarted is 'Hand-outs lost before its payload began, since one began or its user released or rescheduled it.';
