-- name: last
-- The numbers of the last placements of these jobs.
select job_id, max(attempt) as attempt from placement where job_id = any ($1::bigint[]) group by job_id;

-- name: insert
-- Store new placements.
insert into placement (job_id, attempt, rank, site, ce, dispatch, agreement_id, reservation, start_at, latest_start,
    walltime_seconds, predicted)
select p.job_id, p.attempt, p.rank, p.site, p.ce, p.dispatch, p.agreement_id, p.reservation, p.start_at, p.latest_start,
       p.walltime_seconds, p.predicted::jsonb
from unnest($1::bigint[], $2::integer[], $3::integer[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
            $9::timestamptz[], $10::timestamptz[], $11::double precision[], $12::text[])
    as p(job_id, attempt, rank, site, ce, dispatch, agreement_id, reservation, start_at, latest_start, walltime_seconds, predicted);

-- name: abandon
-- Give up the open placements of these jobs whose pilots do not run them.
update placement set state = 'Abandoned', reason = $2, reason_text = $3, changed_at = now()
where job_id = any ($1::bigint[]) and state in ('Ordered', 'Sent');

-- name: end_started
-- Close the started placements of these jobs, which their pilots have no more.
update placement set state = 'Ended', reason = $2, reason_text = $3, changed_at = now()
where job_id = any ($1::bigint[]) and state = 'Started';

-- name: take
-- Take ordered placements that nobody carries out, or whose taker said nothing until its deadline. An element that is told of the
-- reservation keeps the job until its start; at any other it is sent then. Owners take turns, and who has more bound pilots already
-- comes later. An element with a bound ($5 to $7) gets no more jobs without a reservation than leave it with so many bound pilots; a
-- busy one ($8, $9) gets none.
with held as (
    select j.owner, count(*) as pilots from pilot t join job j using (job_id)
    where t.job_id is not null and t.ended_at is null group by j.owner
), due as (
    select o.job_id, o.attempt, o.site, o.ce, o.agreement_id is null as is_bounded, o.created_at,
        row_number() over (partition by j.owner order by o.created_at, o.job_id) + coalesce(h.pilots, 0) as turn
    from placement o join job j using (job_id) left join held h on h.owner = j.owner
    where o.state = 'Ordered' and o.pilot_id is null and (o.taken_until is null or o.taken_until < now())
      and not exists (select from unnest($8::text[], $9::text[]) as b(site, ce) where (b.site, b.ce) = (o.site, o.ce))
      and (o.start_at is null or o.reservation <> '' and exists (
          select from ad a where a.site = o.site and a.ce = o.ce and a.element ->> 'dispatcher' = any ($4::text[]))
          -- A flexible reservation may have been moved.
          or coalesce((select g.start_at from agreement g where g.agreement_id = o.agreement_id), o.start_at) <= now())
), there as (
    select p.site, p.ce, count(*) as pilots from pilot t join placement p on p.job_id = t.job_id and p.pilot_id = t.pilot_id
    where t.job_id is not null and t.ended_at is null and p.agreement_id is null
    group by p.site, p.ce
), room as (
    select b.site, b.ce, b.most - coalesce(t.pilots, 0) as pilots
    from unnest($5::text[], $6::text[], $7::bigint[]) as b(site, ce, most) left join there t using (site, ce)
), fits as (
    select d.job_id, d.attempt, d.turn, d.created_at, r.pilots as room,
        row_number() over (partition by d.site, d.ce, d.is_bounded order by d.turn, d.created_at, d.job_id) as n
    from due d left join room r on d.is_bounded and r.site = d.site and r.ce = d.ce
), t as (
    select p.job_id, p.attempt from placement p join fits f using (job_id, attempt)
    -- Who abandons one meanwhile may be done before its row is locked here.
    where (f.room is null or f.n <= f.room) and p.state = 'Ordered' and p.pilot_id is null
    order by f.turn, f.created_at limit $3 for update of p skip locked
)
update placement p
set taken_by = $1, taken_until = now() + make_interval(secs => $2)
from t
where p.job_id = t.job_id and p.attempt = t.attempt
returning p.job_id, p.attempt, p.rank, p.site, p.ce, p.dispatch, p.state, p.pilot_id, p.agreement_id, p.reservation, p.start_at,
    p.latest_start, p.walltime_seconds, p.reason, p.reason_text, p.predicted::text as predicted, p.created_at, p.changed_at;

-- name: assign
-- Store which pilots are sent for taken placements, before they are sent.
update placement p set pilot_id = a.pilot_id
from unnest($1::bigint[], $2::integer[], $3::text[]) as a(job_id, attempt, pilot_id)
where p.job_id = a.job_id and p.attempt = a.attempt and p.state = 'Ordered'
returning p.job_id, p.attempt;

-- name: mark
-- Move placements from one of the given states to another.
update placement p
set state = m.state, reason = m.reason, reason_text = m.text, changed_at = now()
from unnest($1::bigint[], $2::integer[], $3::text[], $4::text[], $5::text[]) as m(job_id, attempt, state, reason, text)
where p.job_id = m.job_id and p.attempt = m.attempt and p.state = any ($6::text[])
returning p.job_id, p.attempt;

-- name: of_job
-- All placements of a job, in their order.
select job_id, attempt, rank, site, ce, dispatch, state, pilot_id, agreement_id, reservation, start_at, latest_start,
    walltime_seconds, reason, reason_text, predicted::text as predicted, created_at, changed_at
from placement where job_id = $1 order by attempt;

-- name: open_of
-- The open placements of jobs.
select job_id, attempt, rank, site, ce, dispatch, state, pilot_id, agreement_id, reservation, start_at, latest_start,
    walltime_seconds, reason, reason_text, predicted::text as predicted, created_at, changed_at
from placement where job_id = any ($1::bigint[]) and state in ('Ordered', 'Sent', 'Started') order by job_id;

-- name: arrived
-- Placements whose pilots are known at their elements have been sent, whoever died before it wrote that.
update placement p set state = 'Sent', changed_at = now()
from pilot t
where p.pilot_id = t.pilot_id and p.dispatch = 'pilot' and p.state = 'Ordered' and t.state <> 'Submitting' and t.ended_at is null;

-- name: doomed
-- Open placements of waiting jobs that cannot start any more: their pilots have ended, their latest start has passed, or what was
-- reserved for them is over.
select p.job_id, p.attempt, p.site, p.ce,
    case
        -- Its element never knew the pilot: it was stored, and not sent.
        when p.state = 'Ordered' and t.state = 'Aborted' then 'NOT_ARRIVED'
        when p.pilot_id is not null and (t.pilot_id is null or t.ended_at is not null) then 'PILOT_ENDED'
        when a.is_over then 'RESERVATION_LOST'
        else 'TOO_LATE'
    end as reason,
    case when t.ended_at is not null then t.reason when a.is_over then a.why else '' end as text
from placement p join job j using (job_id) left join pilot t on t.pilot_id = p.pilot_id
left join lateral (
    select g.state not in ('Requested', 'Temporary', 'Confirmed') as is_over, concat_ws(': ', g.state, g.code, nullif(g.text, '')) as why
    from agreement g where g.agreement_id = p.agreement_id
) a on true
where p.state in ('Ordered', 'Sent') and j.state = 'Waiting'
  and (p.latest_start < now() or a.is_over or p.pilot_id is not null and (t.pilot_id is null or t.ended_at is not null))
order by p.job_id limit $1;

-- name: jobs
-- What the jobs of open placements require, what they do, and how long their reservations last from now, or from their start on.
select j.job_id, t.requirements::text as requirements, d.body::text as description, j.array_index, j.parameters::text as parameters,
    extract(epoch from a.ends_at - greatest(now(), a.start_at))::float8 as reserved_seconds, j.submitted_at
from job j join task_queue t using (tq_id) join description d using (description_id)
left join placement p on p.job_id = j.job_id and p.state in ('Ordered', 'Sent', 'Started')
left join agreement a on a.agreement_id = p.agreement_id
where j.job_id = any ($1::bigint[]);
