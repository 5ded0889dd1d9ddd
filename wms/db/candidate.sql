-- name: fresh
-- Elements that advertise themselves now, with what their ads say of their load and when that was, and the placements that the ads
-- cannot know of yet.
select a.site, a.ce, a.received_at, a.pilot_seconds, a.advertised_at, a.attributes::text as attributes,
       coalesce(p.coming, 0)::integer as coming
from ad a left join (
    select n.site, n.ce, count(*) as coming
    from placement n join ad b on b.site = n.site and b.ce = n.ce
    where n.state = 'Ordered' or (n.state in ('Sent', 'Started') and n.created_at > b.received_at)
    group by n.site, n.ce
) p on p.site = a.site and p.ce = a.ce
where a.expires_at > now()
order by a.site, a.ce;

-- name: waiting
-- How long placed jobs that have not started have waited so far at each element, the longest first. A job with a reservation waits
-- for its start, not in a queue.
select site, ce, seconds from (
    select site, ce, extract(epoch from now() - created_at)::float8 as seconds,
           row_number() over (partition by site, ce order by created_at) as n
    from placement where state in ('Ordered', 'Sent') and agreement_id is null
) w
where n <= $1 order by site, ce, seconds desc;

-- name: failed
-- The failed placements of jobs, first to last.
select job_id, site, ce, reason, reason_text, created_at from placement
where job_id = any ($1::bigint[]) and state = 'Failed' order by job_id, attempt;
