-- name: current
-- The present incarnation of the database, and the ids of all incarnations whose marks in the log it knows.
select number, incarnation_id, age, marked_at, cluster_id, known_until,
       (select array_agg(i.incarnation_id) || array_agg(i.predecessor) from incarnation i) as known
from incarnation order by number desc limit 1;

-- name: standing
-- How far the database has come: the number and the age of its present incarnation.
select number, age from incarnation order by number desc limit 1;

-- name: begin
-- Begin an incarnation, unless another process has begun it.
insert into incarnation (number, incarnation_id, cluster_id, known_until, predecessor) values ($1, $2, $3, $4, $5)
on conflict (number) do nothing returning number;

-- name: skip_job_ids
-- Give out job ids from a partition of history on that is a whole one behind the id $1: so many more may have been given out after it.
select setval('job_id_seq', (greatest(last_value, $1) / partition_size() + 2) * partition_size() - 1) from job_id_seq;

-- name: next_mark
-- Count a mark, unless another process has counted one within $3 seconds or is about to. Marks of the cluster before $2 are known.
update incarnation i
set age = i.age + 1, marked_at = now(), cluster_id = $1,
    known_until = case when i.cluster_id = $1 then greatest(i.known_until, $2) else $2 end
from (
    select number from incarnation
    where number = (select max(number) from incarnation) and marked_at <= now() - make_interval(secs => $3)
    for update skip locked
) due
where i.number = due.number
returning i.incarnation_id, i.age, i.marked_at, (select last_value from job_id_seq) as last_job_id;
