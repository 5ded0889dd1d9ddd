-- name: write
-- What was decided of elements.
insert into ce_plan (site, ce, decision)
select p.site, p.ce, p.decision::jsonb from unnest($1::text[], $2::text[], $3::text[]) as p(site, ce, decision)
on conflict (site, ce) do update set decision = excluded.decision, decided_at = now();

-- name: keep_only
-- Forget elements that were not planned for.
delete from ce_plan p
where not exists (select from unnest($1::text[], $2::text[]) as k(site, ce) where k.site = p.site and k.ce = p.ce);

-- name: read
-- What was last decided of each element, or of those of one site.
select site, ce, decided_at, decision::text as decision from ce_plan where $1 = '' or site = $1 order by site, ce;
