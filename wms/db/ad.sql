-- name: store
-- Ads, each unless a newer one of the same element is there.
insert into ad (site, ce, element, advertised_at, expires_at)
select a.site, a.ce, a.element::jsonb, a.advertised_at, now() + make_interval(secs => a.lifetime)
from unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[], $5::double precision[])
    as a(site, ce, element, advertised_at, lifetime)
on conflict (site, ce) do update
set element = excluded.element, advertised_at = excluded.advertised_at, received_at = now(), expires_at = excluded.expires_at
where ad.advertised_at < excluded.advertised_at;

-- name: withdraw
-- Elements that went away.
delete from ad a using unnest($1::text[], $2::text[], $3::timestamptz[]) as w(site, ce, advertised_at)
where a.site = w.site and a.ce = w.ce and a.advertised_at <= w.advertised_at;

-- name: forget
-- Ads whose life is over.
delete from ad where expires_at < now();

-- name: fresh
-- The elements that advertise themselves now.
select element::text as element from ad where expires_at > now() order by site, ce;
