-- name: record
-- Write down an order with its answer.
insert into audit_record (owner, owner_group, vo, token_id, command_id, action, subject, jobs, site, code, answer)
values ($1, $2, $3, $4, $5, $6, $7, $8::text::int8multirange, $9, $10, $11);

-- name: page
-- Orders within reach and as sought, the latest first, before one.
select audit_record_id, at, owner, owner_group, vo, token_id, command_id, action, subject, site, code, answer
from audit_record
where ($1::text is null or owner = $1) and ($2::text is null or vo = $2)
  and ($3 = '' or owner = $3) and ($4 = '' or action = $4) and ($5 = '' or site = $5)
  and ($6::bigint is null or jobs @> $6::bigint) and (not $7::boolean or code <> '')
  and ($8::timestamptz is null or at >= $8) and ($9::bigint is null or audit_record_id < $9)
order by audit_record_id desc limit $10;

-- name: forget
-- Delete some orders of long ago. The table itself refuses to lose young ones.
delete from audit_record where audit_record_id = any (array(
    select audit_record_id from audit_record where at < now() - make_interval(secs => $1) order by audit_record_id limit $2));
