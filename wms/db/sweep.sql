-- name: insert
-- Insert sweeps and their first blocks. The history begins with Received and Waiting, as for jobs with rows.
with given as (
    select g.* from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::real[], $7::smallint[],
                           $8::text[], $12::text[])
        as g(first, last, description_id, tq_id, name, user_priority, max_attempts, parameters, job_group)
), swept as (
    insert into sweep (first, last, description_id, tq_id, owner, owner_group, vo, name, user_priority, max_attempts,
                       parameters, job_group)
    select first, last, description_id, tq_id, $9, $10, $11, name, user_priority, max_attempts,
           array(select jsonb_array_elements_text(parameters::jsonb)), job_group
    from given
)
insert into block (first, last, sweep, state, event_seq, reason, history)
select first, last, first, 'Waiting', 2, 'QUEUED', jsonb_build_array(
    jsonb_build_object('seq', 1, 'at', now(), 'before', null, 'event', 'receive', 'state', 'Received',
                       'reason', 'ACCEPTED', 'text', '', 'source', 'job_manager'),
    jsonb_build_object('seq', 2, 'at', now(), 'before', 'Received', 'event', 'enqueue', 'state', 'Waiting',
                       'reason', 'QUEUED', 'text', '', 'source', 'job_manager'))
from given;

-- name: insert_parameters
-- Insert the parameter values of sweeps, a thousand jobs in each row.
insert into parameter (description_id, chunk, columns)
select p.description_id, p.chunk, p.columns
from unnest($1::bigint[], $2::integer[], $3::text[]) as p(description_id, chunk, columns);

-- name: keep
-- Reserve a description without content as the holder of a part of long lists.
insert into description (description_id, body) values (reserve_job_ids(1), 'null') returning description_id;

-- name: note_part
-- Store who owns a part of long lists until a sweep takes it.
insert into unused_part (description_id, owner, command_id, bytes) values ($1, $2, $3, $4);

-- name: unused_of
-- The number and bytes of an owner's parts that no sweep has taken.
select count(*) as parts, coalesce(sum(bytes), 0)::bigint as bytes from unused_part where owner = $1;

-- name: unused
-- The given parts that no sweep has taken, locked.
select description_id from description where description_id = any ($1::bigint[]) order by description_id for update;

-- name: adopt
-- Move the parts of long lists to a description, in order.
update parameter p set description_id = $1, chunk = p.chunk + k.start
from unnest($2::bigint[], $3::integer[]) as k(kept, start) where p.description_id = k.kept;

-- name: forget
-- Delete the holders of parts that a sweep has taken.
delete from description where description_id = any ($1::bigint[]);

-- name: parameters
-- The chunks of a description's lists.
select chunk, columns from parameter
where description_id = $1 and chunk between $2 and $3 order by chunk;

-- name: select
-- A page of the sweeps within the user's scope that have a job in one of these states.
select s.first, s.last, s.name, s.job_group, s.owner, s.owner_group, s.vo, s.submitted_at
from sweep s
where ($1::text is null or s.owner = $1) and ($2::text is null or s.owner_group = $2) and ($3::text is null or s.vo = $3)
  and ($4::text is null or s.owner = $4)
  and ($5::text[] is null
       or exists (select from block b where b.sweep = s.first and b.state = any ($5))
       or exists (select from job j where j.job_id between s.first and s.last and j.state = any ($5)))
  and ($6::bigint is null or case when $7 then s.first < $6 else s.first > $6 end)
  and ($9::text is null or s.job_group = $9)
  and ($10::timestamptz is null or s.submitted_at >= $10
       or exists (select from block b where b.sweep = s.first and b.changed_at >= $10)
       or exists (select from job j where j.job_id between s.first and s.last and j.changed_at >= $10))
order by case when $7 then -s.first else s.first end limit $8;

-- name: count
-- The number of jobs of sweeps by state, with rows and in blocks.
select s.first, c.state, sum(c.jobs)::bigint as jobs
from sweep s
cross join lateral (
    select j.state, count(*) as jobs from job j where j.job_id between s.first and s.last group by j.state
    union all
    select b.state, b.last - b.first + 1 from block b where b.sweep = s.first
) c
where s.first = any ($1::bigint[]) group by s.first, c.state;
