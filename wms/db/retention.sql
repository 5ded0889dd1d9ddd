-- name: make_partitions
-- Create tables for the history of ids to come.
select make_partitions($1);

-- name: drop_partitions
-- Drop empty tables of history.
select drop_partitions();

-- name: submissions
-- Delete commands that were executed long ago.
delete from submission where ctid = any (array(
    select ctid from submission where taken_at < now() - make_interval(secs => $1) limit $2
));

-- name: parts
-- Delete parts of long lists that were never used, and the commands that brought them. A part that a sweep takes at this moment is
-- skipped.
with unused as (
    select u.description_id, u.owner, u.command_id from unused_part u join description d using (description_id)
    where u.kept_at < now() - make_interval(secs => $1) order by u.description_id limit $2 for update of d skip locked
), commands as (
    delete from submission s using unused u where s.owner = u.owner and s.command_id = u.command_id
), lists as (
    delete from parameter p using unused u where p.description_id = u.description_id
), gone as (
    delete from description d using unused u where d.description_id = u.description_id
)
select count(*) from unused;

-- name: mark
-- Store up to which time rows were deleted on purpose, so that no check misses them.
insert into forgotten (what, before) values ($1, now() - make_interval(secs => $2))
on conflict (what) do update set before = greatest(forgotten.before, excluded.before);

-- name: look
-- Examine the next jobs that belong to no sweep: the last id, the jobs that ended long ago, and whether the rest are too young.
with next as (
    select job_id, array_index, state, changed_at, submitted_at from job where job_id > $1 order by job_id limit $2
), needed as (
    -- Jobs that are predecessors of other jobs.
    select job_id from next join dependency on predecessors @> job_id
)
select max(job_id) as last, count(*) as looked_at,
       coalesce(bool_or(submitted_at >= now() - make_interval(secs => least($3::float8, $4::float8))), true) as young,
       array_agg(job_id) filter (where array_index is null and job_id not in (select job_id from needed) and (
           state = 'Deleted' and changed_at < now() - make_interval(secs => $4)
           or state = any ($5::text[]) and changed_at < now() - make_interval(secs => $3)
       )) as over
from next;

-- name: forget_jobs
-- Delete jobs that are still ended, with their history, attempts, and descriptions, which no other job uses.
with gone as (
    delete from job where job_id = any ($1::bigint[]) and state = any ($2::text[])
    returning job_id, description_id, tq_id, brokered
), placements as (
    delete from placement p using gone g where p.job_id = g.job_id
), queues as (
    -- A brokered job's queue is its own.
    delete from task_queue t using gone g where g.brokered and t.tq_id = g.tq_id
), moves as (
    delete from job_move m using gone g where m.job_id = g.job_id
), attempts as (
    delete from ended_attempt a using gone g where a.job_id = g.job_id
), descriptions as (
    delete from description d using gone g where d.description_id = g.description_id
)
select count(*) from gone;

-- name: look_at_sweeps
-- Examine the next sweeps: those whose jobs all ended long ago are returned in `over`.
with next as (
    select first, last from sweep
    where first > $1 and submitted_at < now() - make_interval(secs => least($3::float8, $4::float8)) order by first limit $2
)
select max(first) as last, array_agg(first) filter (where not exists (
    select from job j where j.job_id between n.first and n.last and not (
        j.state = 'Deleted' and j.changed_at < now() - make_interval(secs => $4)
        or j.state = any ($5::text[]) and j.changed_at < now() - make_interval(secs => $3)
    )
) and not exists (
    select from block b where b.sweep = n.first and not (
        b.state = 'Deleted' and b.changed_at < now() - make_interval(secs => $4)
        or b.state = any ($5::text[]) and b.changed_at < now() - make_interval(secs => $3)
    )
) and not exists (select from dependency d where d.predecessors && int8range(n.first, n.last, '[]'))) as over
from next n;

-- name: lock_sweeps
-- Lock sweeps that are to be deleted, so that none of their jobs is brought back.
select first from sweep where first = any ($1::bigint[]) order by first for update;

-- name: begin_forgetting
-- Delete sweeps and their blocks; their job rows follow in later steps.
with blocks as (
    delete from block where sweep = any ($1::bigint[])
), gone as (
    delete from sweep where first = any ($1::bigint[]) returning first, last, description_id
)
insert into forgetting (first, last, description_id) select first, last, description_id from gone;

-- name: forgetting
-- The oldest deleted sweep that still has job rows or a description.
select first, last from forgetting order by first limit 1;

-- name: forget_rows
-- Delete some ended jobs of a deleted sweep, with their history and attempts. A job that was brought back at the last moment is deleted
-- after its end.
with next as (
    select job_id from job where job_id between $1 and $2 and state = any ($3::text[]) order by job_id limit $4
    for update skip locked
), gone as (
    delete from job j using next s where j.job_id = s.job_id returning j.job_id, j.description_id, j.tq_id, j.brokered
), placements as (
    delete from placement p using gone g where p.job_id = g.job_id
), queues as (
    delete from task_queue t using gone g where g.brokered and t.tq_id = g.tq_id
), moves as (
    delete from job_move m using gone g where m.job_id = g.job_id
), attempts as (
    delete from ended_attempt a using gone g where a.job_id = g.job_id
), edited as (
    -- A job whose description was edited has one of its own.
    delete from description d using gone g
    where d.description_id = g.description_id and d.description_id not in (select description_id from forgetting)
)
select count(*) from gone;

-- name: end_forgetting
-- Once no job rows are left, delete the description and the parameters of the sweep.
with over as (
    delete from forgetting f
    where f.first = $1 and not exists (select from job j where j.job_id between f.first and f.last)
    returning f.description_id
), parameters as (
    delete from parameter p using over o where p.description_id = o.description_id
), descriptions as (
    delete from description d using over o where d.description_id = o.description_id
)
select count(*) from over;

-- name: offsets
-- Delete the offsets of clusters that were left long ago for another cluster.
delete from consumer_offset o
where o.moved_at < now() - make_interval(secs => $1)
  and exists (
    select from consumer_offset n
    where n.consumer = o.consumer and n.topic = o.topic and n.cluster_id <> o.cluster_id and n.moved_at > o.moved_at
  );
