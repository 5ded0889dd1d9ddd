-- name: write
-- Store the endpoints of computing elements: how they are reached, and how hosts are requested there.
insert into ce_door (site, ce, forwards, terms)
select d.site, d.ce, string_to_array(d.forwards, ','), d.terms::jsonb
from unnest($1::text[], $2::text[], $3::text[], $4::text[]) as d(site, ce, forwards, terms)
on conflict (site, ce) do update set forwards = excluded.forwards, terms = excluded.terms;

-- name: keep_only
-- Delete the endpoints of all other elements.
delete from ce_door d
where not exists (select from unnest($1::text[], $2::text[]) as k(site, ce) where k.site = d.site and k.ce = d.ce);

-- name: forwards
-- The names of the attributes that each element forwards to its batch system.
select site, ce, forwards from ce_door;

-- name: terms
-- The terms on which hosts are requested at each endpoint.
select site, ce, terms::text as terms from ce_door;
