-- name: renew
-- Extend the life of ads whose content equals that of the element's stored ad.
update ad a
set advertised_at = n.advertised_at, expires_at = now() + make_interval(secs => n.lifetime), withdrawn_at = null
from unnest($1::text[], $2::text[], $3::timestamptz[], $4::double precision[], $5::bytea[])
    as n(site, ce, advertised_at, lifetime, digest)
where a.site = n.site and a.ce = n.ce and a.digest = n.digest
  and (a.advertised_at < n.advertised_at or a.advertised_at > now() + interval '10 minutes')
returning a.site, a.ce;

-- name: beyond
-- Of these ads those for which their sites have no room: new elements beyond $5 of a site, and ads that grow beyond $6 bytes of all of it.
with given as (
    select g.site, g.ce, (a.ce is null)::integer as more, g.bytes - coalesce(a.bytes, 0) as growth
    from unnest($1::text[], $2::text[], $3::bytea[], $4::bigint[]) as g(site, ce, digest, bytes)
    left join ad a using (site, ce) where a.digest is distinct from g.digest
), grown as (
    select site, ce, more, growth, sum(more) over w as elements, sum(growth) over w as bytes
    from given window w as (partition by site order by ce)
), held as (
    select site, count(*) as elements, sum(bytes) as bytes from ad where site in (select site from given) group by site
)
select g.site, g.ce from grown g left join held h using (site)
where (g.more > 0 and g.elements + coalesce(h.elements, 0) > $5)
   or (g.growth > 0 and g.bytes + coalesce(h.bytes, 0) > $6);

-- name: store
-- Store ads, each unless the element has a newer one. An ad dated in the future, stored before such ads were refused, does not count as
-- newer.
insert into ad (site, ce, element, advertised_at, expires_at, attributes, expressions, requirements, rank, digest)
select a.site, a.ce, a.element::jsonb, a.advertised_at, now() + make_interval(secs => a.lifetime),
       a.attributes::jsonb, a.expressions::jsonb, a.requirements, a.rank, a.digest
from unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[], $5::double precision[],
            $6::text[], $7::text[], $8::text[], $9::text[], $10::bytea[])
    as a(site, ce, element, advertised_at, lifetime, attributes, expressions, requirements, rank, digest)
on conflict (site, ce) do update
set element = excluded.element, advertised_at = excluded.advertised_at, received_at = now(), expires_at = excluded.expires_at,
    attributes = excluded.attributes, expressions = excluded.expressions, requirements = excluded.requirements,
    rank = excluded.rank, digest = excluded.digest, withdrawn_at = null
where ad.advertised_at < excluded.advertised_at or ad.advertised_at > now() + interval '10 minutes'
returning site, ce;

-- name: withdraw
-- Withdraw the ads of elements. They stay known, so that jobs that only they can run do not count as impossible for ever.
update ad a set expires_at = least(a.expires_at, now()), advertised_at = w.advertised_at, withdrawn_at = now()
from unnest($1::text[], $2::text[], $3::timestamptz[]) as w(site, ce, advertised_at)
where a.site = w.site and a.ce = w.ce
  and (a.advertised_at <= w.advertised_at or a.advertised_at > now() + interval '10 minutes')
returning a.site, a.ce;

-- name: forget
-- Delete elements whose ads expired more than $1 days ago.
delete from ad where expires_at < now() - make_interval(days => $1);

-- name: forget_place
-- Delete the ads of an element, or of a site, and the decisions planned for them at once.
with plans as (
    delete from ce_plan where site = $1 and ($2 = '' or ce = $2)
)
delete from ad where site = $1 and ($2 = '' or ce = $2) returning site, ce;

-- name: fresh
-- Elements whose ads have not expired, with the arrival times of the ads.
select site, ce, received_at, pilot_seconds from ad where expires_at > now() order by site, ce;

-- name: tell_lives
-- Store the lifetime of pilots that are sent to these elements; rows are locked in the order in which ads are stored.
with held as materialized (
    select a.site, a.ce, l.seconds
    from ad a join unnest($1::text[], $2::text[], $3::double precision[]) as l(site, ce, seconds) using (site, ce)
    where a.pilot_seconds is distinct from l.seconds order by a.site, a.ce for update of a
)
update ad a set pilot_seconds = h.seconds from held h where a.site = h.site and a.ce = h.ce;

-- name: elements
-- The contents of the ads of these computing elements.
select a.site, a.ce, a.received_at, a.element::text as element, a.attributes::text as attributes,
       a.expressions::text as expressions, a.requirements, a.rank
from unnest($1::text[], $2::text[]) as w(site, ce) join ad a using (site, ce);
