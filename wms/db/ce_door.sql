-- name: write
-- How computing elements are reached and asked for hosts.
insert into ce_door (site, ce, forwards, terms)
select d.site, d.ce, string_to_array(d.forwards, ','), d.terms::jsonb
from unnest($1::text[], $2::text[], $3::text[], $4::text[]) as d(site, ce, forwards, terms)
on conflict (site, ce) do update set forwards = excluded.forwards, terms = excluded.terms;

-- name: keep_only
-- Forget elements to which no door leads any more.
delete from ce_door d
where not exists (select from unnest($1::text[], $2::text[]) as k(site, ce) where k.site = d.site and k.ce = d.ce);

-- name: forwards
-- What each element's site forwards to its batch system.
select site, ce, forwards from ce_door;

-- name: terms
-- What is asked for behind each door.
select site, ce, terms::text as terms from ce_door;
