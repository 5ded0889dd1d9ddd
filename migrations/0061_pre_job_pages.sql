-- no transaction

-- Jobs of before in rare states, each update a transaction of its own.
do $$
declare
    low bigint := 0;
    high bigint;
begin
    loop
        select max(job_id) into high from (select job_id from job where job_id > low order by job_id limit 50000) next;
        exit when high is null;
        update job set rare_state = state
        where job_id in (
            select job_id from job
            where job_id > low and job_id <= high and rare_state is null
              and state not in ('Waiting', 'Matched', 'Running', 'Stalled', 'Completing', 'Completed', 'Done')
            order by job_id for update
        );
        commit;
        low := high;
    end loop;
end
$$;

-- Each index is dropped first: one whose building was interrupted is there, but not valid.
drop index concurrently if exists job_by_group;

create index concurrently job_by_group on job (owner, job_group, job_id) where job_group <> '';

drop index concurrently if exists job_by_rare_state;

create index concurrently job_by_rare_state on job (owner, rare_state, job_id) where rare_state is not null;

drop index concurrently if exists job_by_rare_state_of_all;

create index concurrently job_by_rare_state_of_all on job (rare_state, job_id) where rare_state is not null;
