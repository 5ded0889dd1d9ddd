-- name: adopt
-- Begin to broker jobs, or begin anew for those that came back with a later move; `fresh` ones forget what failed before.
insert into job_record (job_id, seq, owner)
select o.job_id, o.seq, j.owner
from unnest($1::bigint[], $2::integer[]) as o(job_id, seq) join job j using (job_id)
order by o.job_id
on conflict (job_id) do update
set seq = excluded.seq, phase = 'Choosing', due_at = now(), tries = 0, changed_at = now(), claimed_by = null,
    claimed_until = null, since = case when job_record.job_id = any ($3::bigint[]) then now() else job_record.since end
where job_record.seq < excluded.seq;

-- name: unknown
-- Orders to the broker of which no record knows: their messages were lost.
select o.job_id, o.seq from broker_order o left join job_record r using (job_id)
where r.seq is null or r.seq < o.seq order by o.job_id limit $1;

-- name: claim
-- Take records whose next step is due, and that nobody works on, or whose worker has not finished in time or sends no heartbeats. Owners
-- take turns: each of them has one record taken before any has two.
with recursive due as (
    select owner, due_at from job_record where phase in ('Choosing', 'Deciding', 'Confirming')
), owners as (
    (select owner from due order by owner limit 1)
    union all
    select (select d.owner from due d where d.owner > o.owner order by d.owner limit 1) from owners o where o.owner is not null
), free as (
    select f.* from owners o cross join lateral (
        select job_id, owner, due_at from job_record
        where owner = o.owner and phase in ('Choosing', 'Deciding', 'Confirming') and due_at <= now()
          and (claimed_until is null or claimed_until < now() or exists (
              select from service_instance i
              where i.instance_id = claimed_by and i.heartbeat_at < now() - make_interval(secs => $4)))
        order by due_at limit $3 for update skip locked
    ) f
), turns as (
    select job_id, due_at, row_number() over (partition by owner order by due_at) as turn from free
)
update job_record r
set claimed_by = $1, claimed_until = now() + make_interval(secs => $2), tries = r.tries + 1
from (select job_id from turns order by turn, due_at limit $3) d join job j using (job_id) join description s using (description_id)
where r.job_id = d.job_id
returning r.job_id, r.seq, r.phase, r.since, r.round, r.asked, r.tries, r.ranking::text as ranking, j.state, j.tq_id, j.array_index,
    j.owner, j.owner_group, j.vo, j.submitted_at, j.event_seq, s.body::text as body;

-- name: hold
-- Lock records for the end of steps, and tell which of them were not taken over by another.
select job_id, coalesce(claimed_by = $2, false) as is_mine from job_record where job_id = any ($1::bigint[]) order by job_id for update;

-- name: finish
-- Store the result of steps, and let go of the records.
update job_record r
set phase = f.phase, due_at = now() + make_interval(secs => f.seconds), round = f.round, asked = string_to_array(f.asked, ' '),
    ranking = coalesce(f.ranking::jsonb, r.ranking), ranked_at = case when f.ranking is null then r.ranked_at else now() end,
    reason = f.reason, reason_text = f.reason_text, claimed_by = null, claimed_until = null, tries = 0, changed_at = now()
from unnest($1::bigint[], $2::text[], $3::float8[], $4::integer[], $5::text[], $6::text[], $7::text[], $8::text[])
    as f(job_id, phase, seconds, round, asked, ranking, reason, reason_text)
where r.job_id = f.job_id;

-- name: hasten
-- Let the next step of these records be due now: what it waits for has come.
update job_record set due_at = now()
where job_id = any ($1::bigint[]) and phase in ('Choosing', 'Deciding', 'Confirming') and due_at > now();

-- name: decided
-- Let the next steps be due now of records whose sites have all decided, or confirmed.
update job_record r set due_at = now()
where r.job_id = any ($1::bigint[]) and r.phase in ('Deciding', 'Confirming') and r.due_at > now() and not exists (
    select from unnest(r.asked) as n(name) left join agreement a on a.agreement_id = n.name
    where a.state is null or a.state = 'Requested' or (a.state = 'Temporary' and r.phase = 'Confirming')
);

-- name: over
-- Placed jobs that have ended, or are held: their agreements are not needed any more.
select r.job_id, r.asked, j.state = 'Held' as is_held from job_record r join job j using (job_id)
where r.phase = 'Placed' and j.state in ('Done', 'Failed', 'Killed', 'Deleted', 'Held')
order by r.job_id limit $1 for update of r skip locked;

-- name: close
-- Close the records of ended jobs.
update job_record set phase = 'Over', asked = '{}', changed_at = now() where job_id = any ($1::bigint[]);

-- name: of_job
-- The record of one job.
select job_id, seq, phase, since, round, asked, due_at, ranking::text as ranking, ranked_at, reason, reason_text, created_at
from job_record where job_id = $1;
