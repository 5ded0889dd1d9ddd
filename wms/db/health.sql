-- name: outbox
-- Parcels that are over 15 s due and not sent, and the seconds for which the oldest has been due.
select count(*) as parcels, coalesce(extract(epoch from now() - min(due_at)), 0)::float8 as age
from outbox where due_at < now() - interval '15 s';

-- name: pilots
-- Live pilots: all, running ones, those silent for over a minute, and those that their element reported as running but that never sent a
-- message.
select count(*) as pilots,
       count(*) filter (where state = 'Running') as running,
       count(*) filter (where seen_at < now() - interval '1 min') as silent,
       count(*) filter (where seen_at is null and state = 'Running' and word_at < now() - interval '1 min') as unheard
from pilot where ended_at is null;

-- name: connections
-- The number of open connections, and the most that the server allows.
select (select count(*) from pg_stat_activity where backend_type = 'client backend') as open,
       current_setting('max_connections')::integer as most;
