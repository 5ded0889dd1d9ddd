-- name: outbox
-- Parcels that are long due and that no relay has sent, and for how many seconds the oldest is.
select count(*) as parcels, coalesce(extract(epoch from now() - min(due_at)), 0)::float8 as age
from outbox where due_at < now() - interval '15 s';

-- name: pilots
-- The pilots that are there: how many have spoken, how many are silent for a minute, and how many never reached us though they run.
select count(*) as pilots,
       count(*) filter (where state = 'Running') as running,
       count(*) filter (where seen_at < now() - interval '1 min') as silent,
       count(*) filter (where seen_at is null and state = 'Running' and word_at < now() - interval '1 min') as unheard
from pilot where ended_at is null;

-- name: connections
-- How many connections there are, and may be.
select (select count(*) from pg_stat_activity where backend_type = 'client backend') as open,
       current_setting('max_connections')::integer as most;
