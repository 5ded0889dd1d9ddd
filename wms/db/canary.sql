-- name: insert
-- A canary is on its way.
insert into canary (job_id, site, ce, asked_by) values ($1, $2, $3, $4);

-- name: open
-- Canaries that are out, and how their jobs do.
select c.job_id, c.site, c.ce, c.asked_by, j.state, extract(epoch from now() - c.sent_at)::float8 as age
from canary c left join job j using (job_id) where c.outcome is null order by c.job_id;

-- name: close
-- A canary is over.
update canary set outcome = $2, ended_at = now() where job_id = $1 and outcome is null;

-- name: wanted
-- Elements that are being tried and have no canary out, with the VO whose pilots went there last.
select s.site, s.ce, coalesce((
    select p.vo from pilot p where p.site = s.site and p.ce = s.ce order by p.submitted_at desc limit 1
), '') as vo
from ce_state s
where s.state = 'probing' and not exists (select from canary c where c.site = s.site and c.ce = s.ce and c.outcome is null)
order by s.site, s.ce;

-- name: of_place
-- The last canaries of an element, newest first; of a site those of all its elements.
select job_id, site, ce, sent_at, asked_by, coalesce(outcome, '') as outcome from canary
where site = $1 and ($2 = '' or ce = $2) order by job_id desc limit $3;

-- name: elements
-- The elements of a site that advertise themselves now.
select element::text as element from ad where site = $1 and ($2 = '' or ce = $2) and expires_at > now() order by ce;

-- name: may_look
-- Whether this transaction is the one that sends canaries now.
select pg_try_advisory_xact_lock(7106);

-- name: overdue
-- Canaries that were given up, and whose jobs are there still.
select c.job_id from canary c join job j using (job_id)
where c.outcome = 'late' and c.ended_at > now() - interval '1 d' and j.state <> all ($1::text[]) and j.stop_requested = ''
order by c.job_id;

-- name: forget
-- Canaries that were over long ago.
delete from canary where job_id = any (array(
    select job_id from canary where ended_at < now() - make_interval(secs => $1) order by job_id limit $2
));

-- name: is_known
-- Whether anything was ever heard of a site, or an element of it.
select exists (select from ad where site = $1 and ($2 = '' or ce = $2)) or exists (
    select from ce_state where site = $1 and ($2 = '' or ce = $2)
);
