-- name: make
-- Create missing rooms without a valid count.
insert into waiting_room (attribute, value, room, counted_at)
select r.attribute, r.value, 0, to_timestamp(0) from unnest($1::text[], $2::text[]) as r(attribute, value)
order by r.attribute, r.value
on conflict (attribute, value) do nothing;

-- name: lock
-- Lock rooms in one order; the time is read once the locks are held.
with held as materialized (
    select w.attribute, w.value, w.room, w.counted_at
    from waiting_room w join unnest($1::text[], $2::text[]) as r(attribute, value) using (attribute, value)
    order by w.attribute, w.value for update of w
)
select attribute, value, room, counted_at, clock_timestamp() as at from held;

-- name: settle
-- Store the remaining room of locked rooms.
update waiting_room w set room = s.room, counted_at = s.counted_at
from unnest($1::text[], $2::text[], $3::bigint[], $4::timestamptz[]) as s(attribute, value, room, counted_at)
where (w.attribute, w.value) = (s.attribute, s.value);

-- name: forget
-- Make the rooms for the owners, groups and VOs of these queues unknown, since jobs return to the queues.
update waiting_room w set room = 0, counted_at = to_timestamp(0)
from task_queue t
where t.tq_id = any ($1::bigint[])
  and (w.attribute, w.value) in (('owner', t.owner), ('owner_group', t.owner_group), ('vo', t.vo));

-- name: of_owner
-- The number of waiting jobs of an owner, with rows and in blocks, and of those that the broker is to place.
select (select count(*) from job where owner = $1 and state = 'Waiting')
     + (select count(*) from broker_order o join job j using (job_id) where j.owner = $1)
     + (select coalesce(sum(b.last - b.first + 1), 0)::bigint
        from sweep s join block b on b.sweep = s.first where s.owner = $1 and b.state = 'Waiting') as jobs;

-- name: of_many
-- The number of waiting jobs of a group, or of a VO.
select coalesce(sum(w.jobs), 0)::bigint as jobs
from (
    select tq_id, jobs from waiting union all
    select j.tq_id, 1 from broker_order o join job j using (job_id)
) w join task_queue t using (tq_id)
where ($1::text is null or t.owner_group = $1) and ($2::text is null or t.vo = $2);
