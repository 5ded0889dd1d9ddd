-- name: watch
-- Become or remain the matcher that writes statistics: if there is none, if it is this one, or if the last one has been silent for long.
insert into queue_watch (matcher, law) values ($1, $2)
on conflict (place) do update set matcher = $1, law = $2, at = now()
where queue_watch.matcher = $1 or queue_watch.at < now() - make_interval(secs => $3)
returning true as watching;

-- name: write
-- Store the states of queues that still exist.
insert into queue_state (tq_id, waiting, weight, levels)
select q.tq_id, q.waiting, q.weight, q.levels::jsonb
from unnest($1::bigint[], $2::bigint[], $3::double precision[], $4::text[]) as q(tq_id, waiting, weight, levels)
join task_queue t using (tq_id)
on conflict (tq_id) do update set waiting = excluded.waiting, weight = excluded.weight, levels = excluded.levels;

-- name: keep_only
-- Delete the states of other queues, which another matcher wrote and which have no waiting jobs.
delete from queue_state where tq_id <> all ($1::bigint[]);

-- name: forget
-- Delete the states of these queues.
delete from queue_state where tq_id = any ($1::bigint[]);

-- name: serve
-- Add matches to counts that fade to 1/e in $3 seconds.
insert into queue_served (tq_id, faded_count)
select s.tq_id, s.matched from unnest($1::bigint[], $2::integer[]) as s(tq_id, matched)
on conflict (tq_id) do update
set faded_count = queue_served.faded_count * exp(greatest(-700, extract(epoch from queue_served.at - now()) / $3::double precision))
                  + excluded.faded_count,
    at = now();

-- name: is_watched
-- Whether the statistics are current.
select at > now() - make_interval(secs => $1) from queue_watch;

-- name: waiting
-- The number of waiting jobs of each queue, and its weight in the draw.
select tq_id, waiting, weight from queue_state where waiting > 0;

-- name: read
-- The state of one queue and its faded count of matches, if the statistics are current.
select s.waiting, s.weight, s.levels::text as levels, w.law,
       coalesce(v.faded_count * exp(greatest(-700, extract(epoch from v.at - now()) / $3::double precision)), 0) as faded_count,
       extract(epoch from now() - least(s.since, v.since))::double precision as watched_seconds
from queue_watch w join queue_state s on s.tq_id = $1 left join queue_served v using (tq_id)
where w.at > now() - make_interval(secs => $2);
