-- name: insert
-- Store a canary that is sent now.
insert into canary (job_id, site, ce, asked_by) values ($1, $2, $3, $4);

-- name: open
-- Canaries without an outcome, with the states of their jobs.
select c.job_id, c.site, c.ce, c.asked_by, j.state, extract(epoch from now() - c.sent_at)::float8 as age
from canary c left join job j using (job_id) where c.outcome is null order by c.job_id;

-- name: close
-- Store the outcome of a canary, unless it has one.
update canary set outcome = $2, ended_at = now() where job_id = $1 and outcome is null;

-- name: wanted
-- Elements that are being probed and have no open canary, with the VO of the pilot sent there last.
select s.site, s.ce, coalesce((
    select p.vo from pilot p where p.site = s.site and p.ce = s.ce order by p.submitted_at desc limit 1
), '') as vo
from ce_state s
where s.state = 'probing' and not exists (select from canary c where c.site = s.site and c.ce = s.ce and c.outcome is null)
order by s.site, s.ce;

-- name: of_place
-- The last canaries of an element, or of all elements of a site, newest first.
select job_id, site, ce, sent_at, asked_by, coalesce(outcome, '') as outcome from canary
where site = $1 and ($2 = '' or ce = $2) order by job_id desc limit $3;

-- name: elements
-- The elements of a site that advertise themselves now.
select element::text as element from ad where site = $1 and ($2 = '' or ce = $2) and expires_at > now() order by ce;

-- name: may_look
-- Take the lock for sending canaries until the transaction ends; false if another transaction holds it.
select pg_try_advisory_xact_lock(7106);

-- name: overdue
-- Jobs of canaries that were given up within the last day, if they have not ended and were not asked to stop.
select c.job_id from canary c join job j using (job_id)
where c.outcome = 'late' and c.ended_at > now() - interval '1 d' and j.state <> all ($1::text[]) and j.stop_requested = ''
order by c.job_id;

-- name: forget
-- Delete canaries that ended long ago.
delete from canary where job_id = any (array(
    select job_id from canary where ended_at < now() - make_interval(secs => $1) order by job_id limit $2
));

-- name: is_known
-- Whether a site, or an element of it, has an ad or a health state.
select exists (select from ad where site = $1 and ($2 = '' or ce = $2)) or exists (
    select from ce_state where site = $1 and ($2 = '' or ce = $2)
);
