-- name: torn
-- Co-allocated jobs that are placed or run, while another of their array is back at the broker, is held, or ended before it began.
-- Once a job has begun in its slot, its end is its own.
with placed as (
    select distinct j.job_id - j.array_index as leader, (d.body ->> 'array')::integer as size
    from placement p join job j using (job_id) join description d using (description_id)
    where p.state in ('Ordered', 'Sent', 'Started') and p.agreement_id is not null and j.array_index is not null
      and d.body ->> 'coallocate' = 'true'
)
select g.leader, g.size, min(o.job_id) as away,
    (array_agg(o.state order by o.job_id))[1] as away_state
from placed g join job o on o.job_id between g.leader and g.leader + g.size - 1
where o.state in ('Received', 'Checking', 'Rescheduled', 'Held')
   or (o.state in ('Failed', 'Killed', 'Deleted')
       and (select b.state from placement b where b.job_id = o.job_id order by b.attempt desc limit 1) is distinct from 'Ended')
group by g.leader, g.size order by g.leader limit $1;
