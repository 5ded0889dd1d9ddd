-- name: make_partitions
-- Make room for the history of ids to come.
select make_partitions($1);

-- name: drop_partitions
-- Drop the tables of history in which nothing is left.
select drop_partitions();

-- name: submissions
-- Forget long-taken commands.
delete from submission where ctid = any (array(
    select ctid from submission where taken_at < now() - make_interval(secs => $1) limit $2
));

-- name: parts
-- Forget parts of long lists that were never used, and that they came. One that a sweep takes just now is left alone.
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
-- Remember what was forgotten on purpose, lest it be missed.
insert into forgotten (what, before) values ($1, now() - make_interval(secs => $2))
on conflict (what) do update set before = greatest(forgotten.before, excluded.before);

-- name: look
-- The next jobs of their own by id: how far this goes, which of them ended long ago, whether the rest are too young.
with next as (
    select job_id, array_index, state, changed_at, submitted_at from job where job_id > $1 order by job_id limit $2
), needed as (
    -- Those after which others are to start.
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
-- Forget jobs that have ended and are still so, with all that is told of them; their descriptions are theirs alone.
with gone as (
    delete from job where job_id = any ($1::bigint[]) and state = any ($2::text[]) returning job_id, description_id
), moves as (
    delete from job_move m using gone g where m.job_id = g.job_id
), attempts as (
    delete from ended_attempt a using gone g where a.job_id = g.job_id
), descriptions as (
    delete from description d using gone g where d.description_id = g.description_id
)
select count(*) from gone;

-- name: look_at_sweeps
-- The next sweeps, and which of them ended long ago with every one of their jobs.
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
-- Nobody may bring back a job of a sweep that is to be forgotten.
select first from sweep where first = any ($1::bigint[]) order by first for update;

-- name: begin_forgetting
-- The sweeps go, and with them the blocks; their rows follow.
with blocks as (
    delete from block where sweep = any ($1::bigint[])
), gone as (
    delete from sweep where first = any ($1::bigint[]) returning first, last, description_id
)
insert into forgetting (first, last, description_id) select first, last, description_id from gone;

-- name: forgetting
-- The oldest sweep that is being forgotten.
select first, last from forgetting order by first limit 1;

-- name: forget_rows
-- Some of its jobs, with all that is told of them. One that was brought back in the last moment goes when it has ended.
with next as (
    select job_id from job where job_id between $1 and $2 and state = any ($3::text[]) order by job_id limit $4
    for update skip locked
), gone as (
    delete from job j using next s where j.job_id = s.job_id returning j.job_id, j.description_id
), moves as (
    delete from job_move m using gone g where m.job_id = g.job_id
), attempts as (
    delete from ended_attempt a using gone g where a.job_id = g.job_id
), edited as (
    -- One that was edited has a description of its own.
    delete from description d using gone g
    where d.description_id = g.description_id and d.description_id not in (select description_id from forgetting)
)
select count(*) from gone;

-- name: end_forgetting
-- None is left: now its description can go.
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
-- Forget the offsets of clusters that were left long ago for others.
delete from consumer_offset o
where o.moved_at < now() - make_interval(secs => $1)
  and exists (
    select from consumer_offset n
    where n.consumer = o.consumer and n.topic = o.topic and n.cluster_id <> o.cluster_id and n.moved_at > o.moved_at
  );
