-- name: taken
-- Which of these commands were taken before, and what they were answered.
select command_id, body_digest, ids::text as ids from submission where owner = $1 and command_id = any ($2::text[]);

-- name: ids
-- The ids that parts of a submission were answered; what was answered words was no submission of jobs.
select command_id, ids::text as ids from submission
where owner = $1 and command_id = any ($2::text[]) and jsonb_typeof(ids) = 'array';

-- name: take
-- Remember commands as taken.
insert into submission (owner, command_id, body_digest, ids)
select $1, s.command_id, s.body_digest, s.ids::jsonb
from unnest($2::text[], $3::bytea[], $4::text[]) as s(command_id, body_digest, ids);
