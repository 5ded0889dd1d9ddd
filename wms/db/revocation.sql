-- name: revision
-- How often revocations were changed.
select number from revocation_revision;

-- name: in_force
-- What is revoked now.
select kind, value from revocation where coalesce(expires_at > now(), true);

-- name: listed
-- What is revoked now, the latest first, after some.
select kind, value, revoked_at, revoked_by, reason, expires_at from revocation
where coalesce(expires_at > now(), true) order by revoked_at desc, kind, value offset $1 limit $2;

-- name: revoke
-- Revoke something; again: by whom and until when it was said last.
insert into revocation (kind, value, revoked_by, reason, expires_at)
values ($1, $2, $3, $4, now() + make_interval(secs => $5))
on conflict (kind, value) do update
set revoked_at = now(), revoked_by = excluded.revoked_by, reason = excluded.reason, expires_at = excluded.expires_at;

-- name: lift
-- End a revocation.
delete from revocation where kind = $1 and value = $2;

-- name: changed
-- Let all services look.
update revocation_revision set number = number + 1;

-- name: forget
-- Delete what is over.
delete from revocation where expires_at < now();
