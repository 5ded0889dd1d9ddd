-- The states that few jobs are in at a time, in a column of their own: an index on `state` itself would be written at each move of a job,
-- and would keep Postgres from updating the row in its page alone.

alter table job add column rare_state text;
comment on column job.rare_state is 'The state, if few jobs are in it at a time (wms/job/state.py, RARE); otherwise null. A trigger keeps it.';

create function job_note_rare_state() returns trigger language plpgsql as $$
begin
    new.rare_state := case
        when new.state not in ('Waiting', 'Matched', 'Running', 'Stalled', 'Completing', 'Completed', 'Done') then new.state
    end;
    return new;
end
$$;
create trigger job_note_rare_state before update of state on job for each row
    when (old.rare_state is not null
          or new.state not in ('Waiting', 'Matched', 'Running', 'Stalled', 'Completing', 'Completed', 'Done'))
    execute function job_note_rare_state();
