-- name: bind
-- Give new jobs queues of their own, in which only the pilots of their placements find them.
update job j set tq_id = b.tq_id, brokered = true
from unnest($1::bigint[], $2::bigint[]) as b(job_id, tq_id) where j.job_id = b.job_id;

-- name: ask
-- Store that the broker is asked to place these jobs.
insert into broker_order (job_id, seq) select o.job_id, o.seq from unnest($1::bigint[], $2::integer[]) as o(job_id, seq)
on conflict (job_id) do update set seq = excluded.seq, asked_at = now(), due_at = now() + interval '60 s', tries = 1;

-- name: answered
-- These jobs are not to be placed any more: they have been, or their users ordered something else.
delete from broker_order where job_id = any ($1::bigint[]);

-- name: due
-- Take orders that the broker has not answered in time, to ask again.
with due as (
    select job_id from broker_order where due_at <= now() order by due_at limit $1 for update skip locked
), again as (
    update broker_order o set due_at = now() + interval '60 s', tries = o.tries + 1 from due d where o.job_id = d.job_id
    returning o.job_id, o.seq
)
select a.job_id, a.seq, j.owner, j.owner_group, j.vo from again a join job j using (job_id) order by a.job_id;

-- name: asked
-- How often, and since when, the broker has been asked to place a job.
select seq, asked_at, tries from broker_order where job_id = $1;

-- name: started
-- These jobs run now: so do their placements.
update placement set state = 'Started', reason = '', reason_text = '', changed_at = now()
where job_id = any ($1::bigint[]) and state in ('Ordered', 'Sent');

-- name: close
-- Close the open placements of jobs that left their pilots or queues: started ones have ended, the others take the state given.
update placement p
set state = case when p.state = 'Started' then 'Ended' else c.state end, reason = c.reason, reason_text = c.text, changed_at = now()
from unnest($1::bigint[], $2::text[], $3::text[], $4::text[]) as c(job_id, state, reason, text)
where p.job_id = c.job_id and p.state in ('Ordered', 'Sent', 'Started');
