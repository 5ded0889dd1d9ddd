-- name: hold
-- Take, or keep, the jobs that are sent directly: whoever holds one does everything for it, until it says nothing for a while.
with mine as (
    update placement p set taken_by = $1, taken_until = now() + make_interval(secs => $2)
    from (
        select job_id, attempt from placement
        where dispatch = 'direct' and state in ('Ordered', 'Sent', 'Started') and pilot_id is not null
          and (taken_by = $1 or taken_until is null or taken_until < now())
        order by job_id limit $3 for update skip locked
    ) o
    where p.job_id = o.job_id and p.attempt = o.attempt
    returning p.*
)
select p.job_id, p.attempt, p.site, p.ce, p.pilot_id, t.dispatcher, t.vo, t.owner_group, t.owner, t.resource, t.slots,
    p.state as placed, extract(epoch from now() - t.submitted_at)::float8 as age, j.state, j.epoch, j.stop_requested, l.phase,
    extract(epoch from l.expires_at - now())::float8 as seconds_left, coalesce(p.latest_start < now(), false) as is_late
from mine p
join pilot t on t.pilot_id = p.pilot_id and t.ended_at is null
join job j on j.job_id = p.job_id
left join lease l on l.job_id = p.job_id and l.pilot_id = p.pilot_id and l.expires_at > now()
order by p.job_id;

-- name: what
-- What the jobs do: their descriptions, and their own parameters.
select j.job_id, d.body::text as description, j.array_index, j.parameters::text as parameters
from job j join description d using (description_id) where j.job_id = any ($1::bigint[]);
