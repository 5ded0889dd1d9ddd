-- name: taken
-- The given commands that were executed before, with their answers.
select command_id, body_digest, ids::text as ids from submission where owner = $1 and command_id = any ($2::text[]);

-- name: ids
-- The job ids with which the parts of a submission were answered. An answer that is no array belongs to another kind of command.
select command_id, ids::text as ids from submission
where owner = $1 and command_id = any ($2::text[]) and jsonb_typeof(ids) = 'array';

-- name: take
-- Store commands as executed.
insert into submission (owner, command_id, body_digest, ids)
select $1, s.command_id, s.body_digest, s.ids::jsonb
from unnest($2::text[], $3::bytea[], $4::text[]) as s(command_id, body_digest, ids);
