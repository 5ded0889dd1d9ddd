-- name: keep
-- Store what attempts measured of the ways between their sites and storage hosts.
insert into transfer (site, host, part, bytes, seconds)
select t.site, t.host, t.part, t.bytes, t.seconds
from unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::float8[]) as t(site, host, part, bytes, seconds)
where t.bytes > 0 and t.seconds > 0;

-- name: note
-- Store how far the transfers of attempts are, for pilots that hold their leases.
update lease l set staging = n.staging::jsonb
from unnest($1::bigint[], $2::integer[], $3::text[], $4::text[]) as n(job_id, epoch, pilot_id, staging)
where l.job_id = n.job_id and l.epoch = n.epoch and l.pilot_id = n.pilot_id and l.phase = 'accepted';

-- name: progress
-- How far the transfers of a job's attempt are, as its pilot said last.
select staging::text as staging from lease where job_id = $1;

-- name: forget
-- Delete old measurements.
delete from transfer where ctid = any (array(
    select ctid from transfer where at < now() - make_interval(secs => $1) order by at limit $2
));
