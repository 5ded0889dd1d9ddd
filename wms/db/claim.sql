-- name: large_offers
-- The offers of these jobs that still stand and may be too large for a message: their descriptions and parameters are over a limit.
select l.job_id, l.epoch, j.event_seq, j.owner, j.owner_group, j.vo, j.array_index, j.parameters, l.pilot_id, l.request_id, j.site,
       j.tq_id, d.body as description
from lease l join job j using (job_id) join description d using (description_id)
where l.job_id = any ($1::bigint[]) and l.phase = 'offered'
  and octet_length(d.body::text) + coalesce(octet_length(j.parameters::text), 0) > $2;

-- name: not_busy
-- Of these jobs those that wait and that no other transaction has its hands on.
select job_id from job where job_id = any ($1::bigint[]) and state = 'Waiting' order by job_id for update skip locked;

-- name: claim
-- Give waiting jobs to pilots: state and lease, which tell the match; a job that no longer waits, or waits elsewhere, is not returned. The
-- attempt counts from now on: what is withdrawn is given back. Nothing is given where limits came that the caller does not know.
-- From now on the transaction waits for nobody's lock for long. Each restore of the database raises epochs by 100,000: none is given twice.
with known as materialized (
    select limits_known($7) as limits, coalesce((select max(number) from incarnation), 1) - 1 as restored
), claimed as (
    update job j
    set state = 'Matched', epoch = (select restored from known) * 100000 + j.epoch % 100000 + 1, event_seq = j.event_seq + 1, attempts = j.attempts + 1, reason = 'OFFERED',
        site = a.site, pilot_id = a.pilot_id, changed_at = now()
    from (
        select job_id, pilot_id, request_id, coalesce(site, '') as site, coalesce(ce, '') as ce, tq_id
        from unnest($1::bigint[], string_to_array($2, E'\x1f'), string_to_array($3, E'\x1f'), string_to_array($4, E'\x1f'),
                    string_to_array($5, E'\x1f'), $8::bigint[]) as u(job_id, pilot_id, request_id, site, ce, tq_id)
        cross join (select set_config('lock_timeout', '100ms', true)) as brief
    ) a
    where j.job_id = a.job_id and j.tq_id = a.tq_id and j.state = 'Waiting' and (select limits from known)
      -- A brokered job is for the pilot of its placement.
      and (not j.brokered or exists (
          select from placement p where p.job_id = j.job_id and p.pilot_id = a.pilot_id and p.state in ('Ordered', 'Sent')))
    returning j.job_id, j.epoch, j.event_seq, j.owner, j.owner_group, j.vo, j.description_id, j.array_index,
              j.parameters, a.pilot_id, a.request_id, a.site, a.ce
), leased as (
    insert into lease (job_id, epoch, seq, pilot_id, request_id, site, ce, phase, expires_at)
    select job_id, epoch, event_seq, pilot_id, request_id, site, ce, 'offered', now() + make_interval(secs => $6)
    from claimed
)
select c.job_id, c.epoch, c.event_seq, c.owner, c.owner_group, c.vo, c.array_index, c.parameters, d.body as description, k.limits
from known k left join (claimed c join description d using (description_id)) on true;

-- name: offered
-- The offers that requests were given before and that still stand.
select l.job_id, l.epoch, j.event_seq, j.owner, j.owner_group, j.vo, j.array_index, j.parameters, l.pilot_id, l.request_id, j.site,
       j.tq_id, d.body as description
from lease l join job j using (job_id) join description d using (description_id)
where l.request_id = any ($1::text[]) and l.phase = 'offered' and l.expires_at > now();
