-- Who ordered a pilot to stop a job, and why: told in the job's history once it has stopped.

create table stop_order (
    job_id bigint primary key,
    source text not null,
    reason text not null
);
comment on table stop_order is 'The last order to stop each job that a pilot is asked to stop; gone when the job has moved on.';
