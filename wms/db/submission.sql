-- name: taken
-- Which of these commands were taken before, and what they were answered.
select command_id, body_digest, ids::text as ids from submission where owner = $1 and command_id = any ($2::text[]);

-- name: take
-- Remember commands as taken.
insert into submission (owner, command_id, body_digest, ids)
select $1, s.command_id, s.body_digest, s.ids::jsonb
from unnest($2::text[], $3::bytea[], $4::text[]) as s(command_id, body_digest, ids);
