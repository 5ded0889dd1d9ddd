-- name: referenced
-- Sandboxes that jobs still refer to, as input or as output.
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
select a.output_sha256 from attempt a join job j using (job_id)
where a.output_sha256 is not null and j.state <> 'Deleted';
