-- name: write
-- Store the planner's decisions on elements.
insert into ce_plan (site, ce, decision)
select p.site, p.ce, p.decision::jsonb from unnest($1::text[], $2::text[], $3::text[]) as p(site, ce, decision)
on conflict (site, ce) do update set decision = excluded.decision, decided_at = now();

-- name: keep_only
-- Delete decisions on elements that are no longer planned for.
delete from ce_plan p
where not exists (select from unnest($1::text[], $2::text[]) as k(site, ce) where k.site = p.site and k.ce = p.ce);

-- name: read
-- The last decision on each element, of one site or of all.
select site, ce, decided_at, decision::text as decision from ce_plan where $1 = '' or site = $1 order by site, ce;
