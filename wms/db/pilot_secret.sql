-- name: insert
-- Store the hashes of the secrets with which pilots are about to be sent.
insert into pilot_secret (pilot_id, digest, expires_at)
select s.pilot_id, s.digest, now() + make_interval(secs => $3) from unnest($1::text[], $2::bytea[]) as s(pilot_id, digest);

-- name: lock
-- The secrets of these pilots with what their tokens name; locked, so that each is exchanged once.
select p.pilot_id, p.site, p.ce, p.vo, p.owner_group, p.owner, p.job_id, s.digest, s.expires_at < now() as expired,
    p.ended_at is not null and coalesce(p.cause not in ('NODE_LOST', 'PILOT_FORGOTTEN'), true) as ended,
    s.exchange_id, extract(epoch from now() - s.exchanged_at)::float8 as exchanged_ago, s.refusals
from pilot_secret s join pilot p using (pilot_id)
where s.pilot_id = any ($1::text[]) order by s.pilot_id for update of s;

-- name: exchanged
-- Store in which exchanges secrets were used, and when the tokens of these pilots expire.
with used as (
    update pilot_secret s set exchange_id = e.exchange_id, exchanged_at = coalesce(s.exchanged_at, now())
    from unnest($1::text[], $2::text[]) as e(pilot_id, exchange_id) where s.pilot_id = e.pilot_id
    returning s.pilot_id
)
update pilot p set token_until = now() + make_interval(secs => $3) from used where p.pilot_id = used.pilot_id;

-- name: refused
-- Count refused exchanges.
update pilot_secret set refusals = refusals + 1 where pilot_id = any ($1::text[]);

-- name: revoke_ended
-- Revoke pilots that got a token through a gateway and have ended, until their last tokens expire. Pilots lost from sight may still work.
with ended as (
    insert into revocation (kind, value, revoked_by, reason, expires_at)
    select 'pilot', pilot_id, $2, 'the pilot has ended', ended_at + make_interval(secs => $3) from pilot
    where link = 'gateway' and token_until is not null
      and ended_at between now() - make_interval(secs => $3) and now() - make_interval(secs => $1)
      and coalesce(cause not in ('NODE_LOST', 'PILOT_FORGOTTEN'), true)
    on conflict do nothing returning 1
)
update revocation_revision set number = number + (select count(*) from ended) where exists (select from ended);

-- name: revoke_copied
-- End pilots whose secrets two have used, and revoke their tokens until they expire. Leases are left to run out, as payloads may still run.
with ended as (
    update pilot set state = 'Aborted', ended_at = now(), reason = $2
    where pilot_id = any ($1::text[]) and ended_at is null
), revoked as (
    insert into revocation (kind, value, revoked_by, reason, expires_at)
    select 'pilot', pilot_id, $3, $2, now() + make_interval(secs => $4) from unnest($1::text[]) as p(pilot_id)
    on conflict do nothing returning 1
)
update revocation_revision set number = number + 1 where exists (select from revoked);
