-- name: read
-- The health of all elements that have a stored state.
select site, ce, state, since, until, reason, said_by, relapses from ce_state order by site, ce;

-- name: lock
-- Read and lock the health of an element. A healthy one gets its row at the first event.
insert into ce_state (site, ce, state) values ($1, $2, 'healthy')
on conflict (site, ce) do update set site = excluded.site
returning state, since, until, reason, said_by, relapses;

-- name: write
-- Store the new health of an element, and the change in its history.
with written as (
    update ce_state set state = $3, since = $4, until = $5, reason = $6, said_by = $7, relapses = $8
    where site = $1 and ce = $2
)
insert into ce_move (site, ce, before, event, state, reason, said_by) values ($1, $2, $9, $10, $3, $6, $7);

-- name: moves
-- Health changes of an element and its site, or of a site and all its elements, newest first.
select at, site, ce, before, event, state, reason, said_by from ce_move
where site = $1 and ($2 = '' or ce in ('', $2)) order by ce_move_id desc limit $3;

-- name: forget
-- Delete old health changes. The change that led to the present state is kept, as are later ones.
delete from ce_move where ce_move_id = any (array(
    select m.ce_move_id from ce_move m
    where m.at < now() - make_interval(secs => $1) and exists (
        select from ce_move n
        where n.site = m.site and n.ce = m.ce and n.ce_move_id > m.ce_move_id and n.before <> n.state
    )
    order by m.ce_move_id limit $2
));

-- name: may_judge
-- Take the lock for judging elements until the transaction ends; false if another transaction holds it.
select pg_try_advisory_xact_lock(7105);

-- name: suspects
-- Elements with at least $3 recent attempts that failed quickly, counted since they last became healthy; a file's fault is not theirs.
select a.site, a.ce
from ended_attempt a left join ce_state s on s.site = a.site and s.ce = a.ce
where a.outcome in ('failed', 'lost') and a.ended_at - coalesce(a.started_at, a.accepted_at) < interval '60 s'
  and a.ended_at > now() - make_interval(secs => $1)
  and a.ended_at - coalesce(a.started_at, a.accepted_at) < make_interval(secs => $2)
  and a.reason <> all ($4::text[])
  and (s.state is null or s.state in ('healthy', 'backing-off') and (s.state <> 'healthy' or a.ended_at > s.since))
group by a.site, a.ce having count(*) >= $3;

-- name: tried
-- Outcomes of recent attempts at all elements, by element, task queue, kind of job and owner; a file's fault is left out.
with of_late as (
    select a.site, a.ce, j.tq_id, a.outcome,
           a.outcome in ('failed', 'lost')
               and a.ended_at - coalesce(a.started_at, a.accepted_at) < make_interval(secs => $2) as quick
    from ended_attempt a join job j using (job_id) left join ce_state s on s.site = a.site and s.ce = a.ce
    where a.ended_at > now() - make_interval(secs => $1) and a.outcome in ('done', 'failed', 'lost')
      and a.accepted_at is not null and a.reason <> all ($4::text[]) and (s.state is distinct from 'healthy' or a.ended_at > s.since) and j.owner <> $3
)
select o.site, o.ce, o.tq_id as queue, md5((q.requirements - '{owner,owner_group,certificate_subject,fqans}'::text[])::text) as kind, q.owner,
       count(*) as ended, count(*) filter (where o.quick) as quick
from of_late o join task_queue q using (tq_id)
group by o.site, o.ce, o.tq_id, q.requirements, q.owner;
