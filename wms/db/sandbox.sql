-- name: referenced
-- The digests of sandboxes to which stored jobs refer, as input or as output.
select distinct s.digest
from job j join description d using (description_id)
cross join lateral jsonb_path_query(d.body::jsonb, '$.input_sandbox[*].sha256') as r(value)
cross join lateral (select r.value #>> '{}' as digest) as s
where j.state <> 'Deleted'
union
select distinct r.value #>> '{}'
from block b join sweep s on s.first = b.sweep join description d using (description_id)
cross join lateral jsonb_path_query(d.body::jsonb, '$.input_sandbox[*].sha256') as r(value)
where b.state <> 'Deleted'
union
-- Those of single jobs of sweeps: values of parameters, as digest:size.
select distinct left(v.value, 64)
from sweep s join description d using (description_id)
cross join lateral jsonb_array_elements_text(d.body::jsonb -> 'input_parameters') as n(name)
join parameter p using (description_id)
cross join lateral jsonb_array_elements_text(p.columns::jsonb -> n.name) as v(value)
where d.body::text like '%"input_parameters"%' and (
    exists (select from block b where b.sweep = s.first and b.state <> 'Deleted')
    or exists (select from job j where j.job_id between s.first and s.last and j.state <> 'Deleted'))
union
-- Of predecessors whose outputs others are to get, even of those that were removed.
select a.output_sha256 from dependency d cross join lateral unnest(d.outputs_of) as r(ids)
join attempt a on a.job_id >= lower(r.ids) and a.job_id < upper(r.ids) where a.output_sha256 is not null
union
select a.output_sha256 from attempt a join job j using (job_id)
where a.output_sha256 is not null and j.state <> 'Deleted';

-- name: claim
-- Note that this owner sent archives whole.
insert into sandbox_claim (sha256, owner, owner_group, vo)
select distinct g.sha256, $2, $3, $4 from unnest($1::text[]) as g(sha256) order by g.sha256
on conflict (sha256, owner, owner_group, vo) do update set claimed_at = now();

-- name: unclaimed
-- Those of the archives that this owner never sent.
select g.sha256 from unnest($1::text[]) as g(sha256)
where not exists (
    select from sandbox_claim c
    where c.sha256 = g.sha256 and c.owner = $2 and c.owner_group = $3 and c.vo = $4)
order by g.sha256;

-- name: forget_claims
-- Delete the claims on archives to which no job refers, and which nobody has sent again for so many seconds.
delete from sandbox_claim where claimed_at < now() - make_interval(secs => $1) and sha256 <> all ($2::text[]);
