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
