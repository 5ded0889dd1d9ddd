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

-- name: failed
-- The failed placements of jobs, first to last.
select job_id, site, ce, reason, reason_text, created_at from placement
where job_id = any ($1::bigint[]) and state = 'Failed' order by job_id, attempt;
