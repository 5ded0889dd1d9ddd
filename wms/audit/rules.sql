-- Every block is a rule: its query returns one line of text a violation. The header says the rule's name, the number of
-- the invariant, and what it is held against (a table, perhaps with a condition).
-- What a rule is given stands with its type: $1::text[] is the list of legal moves, $1::bigint how many offers may be open.

-- rule: acknowledged submissions are there whole, their owner's
-- invariant: 1
-- of: submission where jsonb_typeof(ids) = 'array'
select format('submission %s of %s: of the jobs %s to %s only %s are there', s.command_id, s.owner, r.lo, r.hi, n.found)
from submission s
cross join lateral (
    select (e ->> 0)::bigint as lo, (e ->> 1)::bigint as hi
    from jsonb_array_elements(case when jsonb_typeof(s.ids) = 'array' then s.ids else '[]' end) as e
) r
cross join lateral (
    select count(*) + (
        select coalesce(sum(least(b.last, r.hi) - greatest(b.first, r.lo) + 1), 0)
        from block b join sweep w on w.first = b.sweep
        where int8range(b.first, b.last, '[]') && int8range(r.lo, r.hi, '[]') and w.owner = s.owner
    ) as found
    from job j where j.job_id between r.lo and r.hi and j.owner = s.owner
) n
where n.found <> r.hi - r.lo + 1;

-- rule: every job belongs to one submission
-- invariant: 2
-- of: job
with given as (
    select (e ->> 0)::bigint as lo, (e ->> 1)::bigint as hi
    from submission s
    cross join lateral jsonb_array_elements(case when jsonb_typeof(s.ids) = 'array' then s.ids else '[]' end) as e
), ordered as (
    select lo, hi, max(hi) over (order by lo, hi rows between unbounded preceding and 1 preceding) as before from given
), islands as (
    select range_agg(int8range(lo, hi, '[]')) as all_given from given
)
select format('the jobs %s to %s were given to a second submission', lo, least(hi, before)) from ordered where lo <= before
union all
select format('job %s was never acknowledged', j.job_id) from job j, islands i
where not coalesce(i.all_given @> j.job_id, false)
  and j.submitted_at >= coalesce((select before from forgotten where what = 'submission'), '-infinity')
union all
select format('the jobs %s to %s were never acknowledged', s.first, s.last) from sweep s, islands i
where not coalesce(i.all_given @> int8range(s.first, s.last, '[]'), false)
  and s.submitted_at >= coalesce((select before from forgotten where what = 'submission'), '-infinity');

-- rule: a sweep's jobs are in its blocks or have rows, each once
-- invariant: 2
-- of: sweep
with edited as (
    select j.job_id, j.description_id from sweep s join job j on j.job_id between s.first and s.last
    where j.array_index is not null and j.description_id <> s.description_id
), doubled as (
    select description_id from job where description_id in (select description_id from edited)
    group by description_id having count(*) > 1
    union all
    select description_id from sweep
), own as (
    -- A job that was edited has a description that no other has.
    select job_id from edited where description_id not in (select description_id from doubled)
)
select format('sweep %s to %s: %s jobs have rows, %s are in blocks', s.first, s.last, r.jobs, coalesce(b.jobs, 0))
from sweep s
cross join lateral (
    select count(*) as jobs from job j
    where j.job_id between s.first and s.last and j.array_index = j.job_id - s.first
      and (j.description_id = s.description_id or j.job_id in (select job_id from own))
) r
left join (select sweep, sum(last - first + 1) as jobs from block group by sweep) b on b.sweep = s.first
where r.jobs + coalesce(b.jobs, 0) <> s.last - s.first + 1
union all
select format('block %s to %s lies outside its sweep', b.first, b.last)
from block b left join sweep s on s.first = b.sweep where s.first is null or b.first < s.first or b.last > s.last
union all
select format('job %s has a row and is in block %s to %s', j.job_id, b.first, b.last)
from block b join job j on j.job_id between b.first and b.last
union all
select format('block %s to %s and block %s to %s have jobs in common', b.first, b.last, o.first, o.last)
from block b join block o on o.first > b.first and o.first <= b.last;

-- rule: histories are numbered from 1 without a gap
-- invariant: 3
-- of: job_event
select format('job %s: %s moves, numbered from %s to %s', job_id, count(*), min(seq), max(seq))
from job_event group by job_id having min(seq) <> 1 or max(seq) <> count(*);

-- rule: every move is one of the state table
-- invariant: 3
-- of: job_event
select format('job %s, move %s: %s --%s--> %s', job_id, seq, before, event, state)
from job_event
where coalesce(before, '') || '/' || event || '/' || state <> all ($1::text[]) or (before is null) <> (seq = 1);

-- rule: every move begins where the one before it ended
-- invariant: 3
-- of: job_event
select format('job %s, move %s begins at %s; the one before it ended at %s', job_id, seq, before, reached)
from (select job_id, seq, before, lag(state) over (partition by job_id order by seq) as reached from job_event) m
where before is distinct from reached and before is not null and reached is not null;

-- rule: every job is where its history ends
-- invariant: 3
-- of: job
select format('job %s is %s, epoch %s, after %s moves; its history ends %s, epoch %s, after %s', coalesce(j.job_id, e.job_id),
              j.state, j.epoch, j.event_seq, e.state, e.epoch, e.seq)
from job j full join (select distinct on (job_id) job_id, seq, state, epoch from job_event order by job_id, seq desc) e
    using (job_id)
where (j.state, j.epoch, j.event_seq) is distinct from (e.state, e.epoch, e.seq);

-- rule: the jobs of a block have one history, by the state table, and are where it ends
-- invariant: 3
-- of: block
with moves as (
    select b.first, b.last, m.seq, m.before, m.event, m.state, row_number() over told as number,
           lag(m.state) over told as reached
    from block b
    cross join lateral jsonb_to_recordset(b.history) as m(seq integer, before text, event text, state text)
    window told as (partition by b.first order by m.seq)
)
select format('block %s to %s, move %s: %s --%s--> %s, after %s', first, last, seq, before, event, state, reached)
from moves
where seq <> number or before is distinct from reached
   or coalesce(before, '') || '/' || event || '/' || state <> all ($1::text[])
union all
select format('block %s to %s is %s after %s moves; its history ends %s after %s', b.first, b.last, b.state, b.event_seq,
              m.state, m.seq)
from block b left join (select distinct on (first) first, state, seq from moves order by first, seq desc) m using (first)
where (b.state, b.event_seq) is distinct from (m.state, m.seq)
union all
select format('block %s to %s has no history', first, last) from block where jsonb_array_length(history) = 0;

-- rule: no job has two leases
-- invariant: 4
-- of: lease
select format('job %s has %s leases', job_id, count(*)) from lease group by job_id having count(*) > 1;

-- rule: a job has a lease exactly while a pilot has it
-- invariant: 4
-- of: job
select format('job %s is %s and %s', coalesce(j.job_id, l.job_id), coalesce(j.state, 'unknown'),
              case when l.job_id is null then 'has no lease' else 'has a lease' end)
from job j full join (select distinct job_id from lease) l using (job_id)
where coalesce(j.state = any (array['Matched', 'Running', 'Stalled', 'Completing', 'Completed']), false)
      <> (l.job_id is not null);

-- rule: a lease is of its job's epoch and pilot
-- invariant: 4
-- of: lease
select format('job %s is at epoch %s with pilot %s; its lease is of epoch %s, pilot %s', j.job_id, j.epoch, j.pilot_id,
              l.epoch, l.pilot_id)
from lease l join job j using (job_id) where (l.epoch, l.pilot_id) is distinct from (j.epoch, j.pilot_id);

-- rule: no pilot holds more than its slots and what it may fetch ahead
-- invariant: 4
-- of: lease
-- Eight jobs a slot ahead, as many more as the matchers are configured to offer, and for each job that it has done four, up to a
-- request's most. Of several matchers the most generous counts.
select format('pilot %s with %s slots and %s jobs done holds %s leases', p.pilot_id, p.slots, p.jobs_done, l.leases)
from (select pilot_id, count(*) as leases from lease where phase = 'accepted' or expires_at > now() group by pilot_id) l
join (select pilot_id, coalesce(sent_slots, slots) as slots, jobs_done from pilot) p using (pilot_id)
cross join (
    select coalesce($1::bigint, max((health ->> 'offers_open')::bigint), 8) as more
    from service_instance where service = 'matcher' and jsonb_typeof(health -> 'offers_open') = 'number'
) matchers
where l.leases > 9 * p.slots + matchers.more + least(4 * p.jobs_done, 1024);

-- rule: a pilot that told its end holds nothing
-- invariant: 4
-- of: lease
select format('job %s, epoch %s: pilot %s has it, which ended at %s', l.job_id, l.epoch, l.pilot_id, p.ended_at)
from lease l join pilot p using (pilot_id)
where l.phase = 'accepted' and p.state = 'Done' and p.cause is null and p.ended_at < now() - interval '60 s'
  and p.seen_at >= p.ended_at;

-- rule: epochs count the matches of a job
-- invariant: 4
-- of: job_event
-- Each restore of the database raises them by 100,000.
select format('job %s, move %s (%s): epoch %s after %s matches', job_id, seq, event, epoch, matches)
from (select job_id, seq, event, epoch,
             count(*) filter (where event = 'match') over (partition by job_id order by seq) as matches from job_event) m
where epoch % 100000 <> matches;

-- rule: every match is an attempt of the same epoch and pilot, and every attempt a match
-- invariant: 4
-- of: attempt
select format('job %s, epoch %s: matched to %s, an attempt of %s', coalesce(a.job_id, e.job_id), coalesce(a.epoch, e.epoch),
              coalesce(e.text, 'nobody'), coalesce(a.pilot_id, 'nobody'))
from attempt a
full join (select job_id, epoch, text from job_event where event = 'match') e on a.job_id = e.job_id and a.epoch = e.epoch
where a.pilot_id is distinct from e.text;

-- rule: an attempt is open exactly while its lease is there
-- invariant: 5
-- of: attempt
select format('job %s, epoch %s: the attempt %s, and %s', coalesce(a.job_id, l.job_id), coalesce(a.epoch, l.epoch),
              case when a.job_id is null then 'that is open is none' else 'is open' end,
              case when l.job_id is null then 'there is no such lease' else 'there is a lease' end)
from (select job_id, epoch, pilot_id from attempt where ended_at is null) a
full join lease l on l.job_id = a.job_id and l.epoch = a.epoch and l.pilot_id = a.pilot_id
where a.job_id is null or l.job_id is null;

-- rule: an attempt ends once, as its job moved under that epoch
-- invariant: 5
-- of: attempt where ended_at is not null
with ends as (
    select job_id, epoch, count(*) as times, min(event) as event
    from job_event
    where before = any (array['Matched', 'Running', 'Stalled', 'Completing', 'Completed'])
      and state <> all (array['Matched', 'Running', 'Stalled', 'Completing', 'Completed'])
    group by job_id, epoch
)
select format('job %s, epoch %s: %s of the attempt, %s time(s) %s in the history', coalesce(a.job_id, e.job_id),
              coalesce(a.epoch, e.epoch), coalesce(a.outcome, 'no end'), coalesce(e.times, 0), coalesce(e.event, 'ended'))
from attempt a full join ends e using (job_id, epoch)
where (a.outcome is not null) is distinct from (e.times = 1)
      and (a.outcome is not null or e.times is not null)
   or a.outcome is not null and e.event <> all (case a.outcome
          when 'done' then array['finish', 'kill']
          when 'failed' then array['fail', 'kill', 'reschedule']
          when 'killed' then array['kill', 'reschedule']
          else array['reschedule', 'fail', 'kill'] end);

-- rule: nothing starts or ends by its payload before its lease is accepted
-- invariant: 5
-- of: attempt
select format('job %s, epoch %s: never accepted, yet %s', job_id, epoch, coalesce(outcome, 'started'))
from attempt where accepted_at is null and (started_at is not null or outcome in ('done', 'failed', 'killed', 'lost'));

-- rule: attempts of one job follow each other
-- invariant: 6
-- of: attempt
-- A time is that of its transaction's beginning, so that two that wait for each other may seem to cross for a moment.
select format('job %s, epoch %s was offered at %s, before the attempt before it ended at %s', job_id, epoch, offered_at, before)
from (select job_id, epoch, offered_at,
             lag(coalesce(ended_at, 'infinity')) over (partition by job_id order by epoch) as before from attempt) a
where before - interval '2 s' > offered_at;

-- rule: what ended by its payload is started again only after a reschedule that was ordered, or as often as its description says
-- invariant: 7
-- of: attempt where outcome in ('done', 'failed')
select format('job %s: %s in epoch %s, and then epoch %s', a.job_id, a.outcome, a.epoch, n.epoch)
from attempt a join attempt n on n.job_id = a.job_id and n.epoch = a.epoch + 1
where a.outcome in ('done', 'failed') and not (a.outcome = 'failed' and exists (
    select from job_event e
    where e.job_id = a.job_id and e.epoch = a.epoch and e.event = 'reschedule' and e.reason = 'RESCHEDULED_BY_USER'))
  and not (a.outcome = 'failed' and a.reason in ('EXIT_CODE', 'SIGNAL') and (
    select count(*) from attempt f
    where f.job_id = a.job_id and f.outcome = 'failed' and f.epoch <= a.epoch and f.epoch > coalesce((
        select max(e.epoch) from job_event e
        where e.job_id = a.job_id and e.epoch < a.epoch and e.event = 'reschedule' and e.reason = 'RESCHEDULED_BY_USER'), 0)
  ) <= (select coalesce((d.body ->> 'retries')::integer, 0) from job j join description d using (description_id) where j.job_id = a.job_id))
  -- Its retries may have been others before it was edited.
  and not exists (
      select from job_event e where e.job_id = a.job_id and e.epoch >= a.epoch and e.reason = 'EDITED_BY_USER');

-- rule: attempts are counted and bounded
-- invariant: 7
-- of: job where epoch > 0
select format('job %s counts %s attempts of %s; since its user last asked for more there were %s', j.job_id, j.attempts,
              j.max_attempts, c.taken)
from job j
cross join lateral (
    -- Those whose payload began, and the one that is open.
    select count(*) as taken from attempt a
    where a.job_id = j.job_id and (a.started_at is not null and a.outcome is distinct from 'withdrawn' or a.ended_at is null) and a.epoch > coalesce((
        select max(e.epoch) from job_event e
        where e.job_id = j.job_id and e.event = 'reschedule' and e.reason = 'RESCHEDULED_BY_USER'), 0)
) c
where j.epoch > 0 and (j.attempts <> c.taken or j.attempts > j.max_attempts);

-- rule: a job fails of too many attempts only after so many that began
-- invariant: 7
-- of: job_event where event = 'fail'
select format('job %s failed in epoch %s after %s attempts that began, of %s', j.job_id, f.epoch, c.began, j.max_attempts)
from job_event f
join job j using (job_id)
cross join lateral (
    select count(*) as began from attempt a
    where a.job_id = f.job_id and a.epoch <= f.epoch and a.started_at is not null and a.epoch > coalesce((
        select max(e.epoch) from job_event e
        where e.job_id = f.job_id and e.seq < f.seq and e.event = 'reschedule' and e.reason = 'RESCHEDULED_BY_USER'), 0)
) c
where f.reason = 'TOO_MANY_ATTEMPTS' and c.began < j.max_attempts
  -- Its bound may have been another before it was edited.
  and not exists (
      select from job_event e where e.job_id = f.job_id and e.seq > f.seq and e.reason = 'EDITED_BY_USER');

-- rule: what is lost ten times before it begins is held
-- invariant: 7
-- of: attempt where accepted_at is not null and started_at is null and ended_at is not null
-- A row of losses ends when the job begins, or when its user wants it tried again.
with ends as (
    select job_id, epoch from attempt where started_at is not null and ended_at is not null
    union
    select job_id, epoch from job_event where event = 'release' or reason = 'RESCHEDULED_BY_USER'
), losses as (
    select a.job_id, a.epoch, coalesce((select max(e.epoch) from ends e where e.job_id = a.job_id and e.epoch < a.epoch), -1) as after
    from attempt a
    where a.accepted_at is not null and a.started_at is null and a.ended_at is not null
      and a.reason <> all (array['OFFER_EXPIRED', 'OFFER_DECLINED'])
), numbered as (
    select *, row_number() over (partition by job_id, after order by epoch) as number from losses
)
select format('job %s, epoch %s: lost for the %sth time before it began, and not held', n.job_id, n.epoch, n.number)
from numbered n
where n.number > 10 or n.number = 10 and not exists (
    select from job_event e where e.job_id = n.job_id and e.epoch = n.epoch
        and (e.reason = any (array['NEVER_STARTED', 'RESCHEDULED_BY_USER', 'FILE_UNAVAILABLE', 'FILE_CORRUPT', 'URL_REFUSED']) or e.state = any (array['Failed', 'Killed'])))
union all
select format('job %s counts %s losses before it began, there were %s', j.job_id, j.unstarted, coalesce(c.losses, 0))
from job j
left join (
    select l.job_id, count(*) as losses from losses l
    where not exists (select from ends e where e.job_id = l.job_id and e.epoch >= l.epoch) group by l.job_id
) c using (job_id)
where j.unstarted <> coalesce(c.losses, 0);

-- rule: a held job says why
-- invariant: 21
-- of: job where state = 'Held'
select format('job %s is held for "%s", its last move was for "%s"', j.job_id, j.reason, e.reason)
from job j left join job_event e on e.job_id = j.job_id and e.seq = j.event_seq
where j.state = 'Held'
  and (j.reason is distinct from e.reason or j.reason <> all (array['HELD_BY_USER', 'NEVER_STARTED', 'TOO_LARGE', 'DEPENDENCY', 'DEPENDENCY_FAILED', 'NOT_PLACED', 'INDEX_REFUSED', 'BROKER_FAULT',
      'COALLOCATION_BROKEN', 'FILE_UNAVAILABLE', 'FILE_CORRUPT', 'URL_REFUSED']))
union all
select format('the jobs %s to %s are held for "%s"', first, last, reason)
from block where state = 'Held' and reason <> all (array['HELD_BY_USER', 'NEVER_STARTED', 'TOO_LARGE', 'DEPENDENCY', 'DEPENDENCY_FAILED']);

-- rule: no job waits for predecessors that have all ended as they must, and none starts before
-- invariant: 22
-- of: dependency
-- What is looked at every second is given a minute.
with unmet as (
    select d.dependency_id
    from dependency d cross join lateral unnest(d.predecessors) as r(ids)
    join job j on j.job_id >= lower(r.ids) and j.job_id < upper(r.ids)
    where j.state <> 'Done' and not (d.any_end @> j.job_id and j.state in ('Failed', 'Killed', 'Deleted'))
      and not (j.state = 'Deleted' and exists (select from job_event e where e.job_id = j.job_id and e.state = 'Done'))
       or j.changed_at > now() - interval '60 s'
    union
    select d.dependency_id
    from dependency d cross join lateral unnest(d.predecessors) as r(ids)
    join block b on int8range(b.first, b.last, '[]') && r.ids
    where not (b.state in ('Killed', 'Deleted') and d.any_end @> (int8range(b.first, b.last, '[]') * r.ids))
       or b.changed_at > now() - interval '60 s'
), told as (
    select job_id as first, job_id as last from job where state = 'Held' and reason in ('DEPENDENCY', 'DEPENDENCY_FAILED')
    union all
    select first, last from block where state = 'Held' and reason in ('DEPENDENCY', 'DEPENDENCY_FAILED')
)
select format('the jobs %s wait for %s, which have all ended as they must', jobs, predecessors)
from dependency d
where d.made_at < now() - interval '60 s' and d.dependency_id not in (select dependency_id from unmet)
  and exists (select from told t where int8range(t.first, t.last, '[]') && d.jobs)
  and exists (select from service_instance where service = 'job_manager' and heartbeat_at > now() - interval '10 s'
                                                 and started_at < now() - interval '60 s')
union all
select format('the jobs %s to %s are to start after others, and nobody knows which', t.first, t.last)
from told t where not exists (select from dependency d where d.jobs @> int8range(t.first, t.last, '[]'))
union all
select format('job %s is %s before what it was to start after', j.job_id, j.state)
from dependency d cross join lateral unnest(d.jobs) as r(ids)
join job j on j.job_id >= lower(r.ids) and j.job_id < upper(r.ids)
where not isempty(d.pending) and j.state not in ('Held', 'Killed', 'Deleted')
union all
select format('the jobs %s to %s are %s before what they were to start after', b.first, b.last, b.state)
from dependency d cross join lateral unnest(d.jobs) as r(ids) join block b on int8range(b.first, b.last, '[]') && r.ids
where not isempty(d.pending) and b.state = 'Waiting';

-- rule: queues whose jobs wait are told why
-- invariant: 21
-- of: task_queue where removed_at is null
-- By a job manager that looks, of what the matchers know: not of what came within the last minutes.
select format('task queue %s: %s jobs wait since %s, and nobody said why', j.tq_id, count(*), min(j.changed_at))
from job j
where j.state = 'Waiting' and j.changed_at < now() - interval '3 min'
  and not exists (select from wait_reason r where r.tq_id = j.tq_id)
  and exists (select from queue_watch where at > now() - interval '10 s')
  and exists (select from service_instance where service = 'job_manager' and heartbeat_at > now() - interval '10 s'
                                                 and started_at < now() - interval '3 min')
group by j.tq_id;

-- rule: waiting jobs are in a queue that matchers know
-- invariant: 8
-- of: job where state = 'Waiting'
select format('job %s waits in task queue %s, which was removed', j.job_id, j.tq_id)
from job j left join task_queue t using (tq_id)
where j.state = 'Waiting' and (t.tq_id is null or t.removed_at is not null)
union all
select format('block %s to %s waits in task queue %s, which was removed', b.first, b.last, s.tq_id)
from block b join sweep s on s.first = b.sweep join task_queue t using (tq_id)
where b.state = 'Waiting' and t.removed_at is not null;

-- rule: brokered jobs have queues of their own
-- invariant: 8
-- of: job where brokered
select format('job %s is brokered, and its task queue %s is not its own', j.job_id, j.tq_id)
from job j left join task_queue t using (tq_id)
where j.brokered and not coalesce(t.requirements::jsonb -> 'tags' ? ('job:' || j.job_id), false)
union all
select format('job %s is in task queue %s, which is that of a brokered job', j.job_id, j.tq_id)
from job j join task_queue t using (tq_id)
where not j.brokered and t.requirements::text like '%"job:%' and exists (
    select from jsonb_array_elements_text(t.requirements::jsonb -> 'tags') as tag where tag like 'job:%');

-- rule: the broker was asked to place every brokered job that is Checking
-- invariant: 23
-- of: job where brokered and state = 'Checking'
select format('job %s is Checking since move %s; the broker was asked by %s', j.job_id, j.event_seq,
              coalesce('the order of move ' || o.seq, 'nobody'))
from job j left join broker_order o using (job_id)
where j.brokered and j.state = 'Checking' and o.seq is distinct from j.event_seq
union all
select format('the broker is asked to place job %s, which is %s', o.job_id, coalesce(j.state, 'unknown'))
from broker_order o left join job j using (job_id) where j.state is distinct from 'Checking'
union all
select format('job %s: the broker should have been asked again at %s', o.job_id, o.due_at)
from broker_order o
where o.due_at < now() - interval '2 min'
  and exists (select from service_instance where service = 'job_manager' and heartbeat_at > now() - interval '10 s'
                                                 and started_at < now() - interval '2 min');

-- rule: a brokered job waits, or is with a pilot, exactly under an open placement
-- invariant: 23
-- of: job where brokered
select format('job %s is %s, and no placement is open', j.job_id, j.state)
from job j
where j.brokered and j.state = any (array['Waiting', 'Matched', 'Running', 'Stalled', 'Completing', 'Completed'])
  and not exists (select from placement p where p.job_id = j.job_id and p.state in ('Ordered', 'Sent', 'Started'))
union all
select format('job %s is %s, and placement %s is %s', p.job_id, coalesce(j.state, 'unknown'), p.attempt, p.state)
from placement p left join job j using (job_id)
where p.state in ('Ordered', 'Sent') and coalesce(j.state, '') <> all (array['Waiting', 'Matched'])
   or p.state = 'Started' and coalesce(j.state, '') <> all (array['Running', 'Stalled', 'Completing', 'Completed']);

-- rule: no placement outlives its latest start
-- invariant: 23
-- of: placement
-- By a pilot submitter that looks.
select format('placement %s of job %s is %s, and its latest start was %s', p.attempt, p.job_id, p.state, p.latest_start)
from placement p join job j using (job_id)
where p.state in ('Ordered', 'Sent') and j.state = 'Waiting' and p.latest_start < now() - interval '1 min'
  and exists (select from service_instance where service = 'pilot_submitter' and heartbeat_at > now() - interval '10 s'
                                                 and started_at < now() - interval '1 min');

-- rule: co-allocated jobs wait for slots that start together, at different elements
-- invariant: 23
-- of: placement where agreement_id is not null
select format('jobs %s and %s start together, and wait for slots from %s at %s/%s and from %s at %s/%s', p.job_id, q.job_id,
              p.start_at, p.site, p.ce, q.start_at, q.site, q.ce)
from placement p join job j using (job_id) join description d using (description_id)
join placement q on q.job_id between p.job_id + 1 and p.job_id - j.array_index + (d.body ->> 'array')::integer - 1
where p.state in ('Ordered', 'Sent') and q.state in ('Ordered', 'Sent') and j.array_index is not null and d.body ->> 'coallocate' = 'true'
  and (abs(extract(epoch from p.start_at - q.start_at)) > 1 or (p.site, p.ce) = (q.site, q.ce));

-- rule: no co-allocated job waits for its slot without the others
-- invariant: 23
-- of: placement where agreement_id is not null
-- By a broker that looks.
select format('job %s waits for its slot, and job %s, which starts with it, is %s since %s', p.job_id, k.job_id, k.state, k.changed_at)
from placement p join job j using (job_id) join description d using (description_id)
join job k on k.job_id between p.job_id - j.array_index and p.job_id - j.array_index + (d.body ->> 'array')::integer - 1
where p.state in ('Ordered', 'Sent') and j.array_index is not null and d.body ->> 'coallocate' = 'true'
  and k.state in ('Received', 'Checking', 'Rescheduled', 'Held') and k.changed_at < now() - interval '1 min'
  and exists (select from service_instance where service = 'resource_broker' and heartbeat_at > now() - interval '10 s'
                                                 and started_at < now() - interval '1 min');

-- rule: a bound pilot is of one placement of its job, and has no other job
-- invariant: 23
-- of: pilot where job_id is not null
select format('pilot %s is bound to job %s, for which %s', t.pilot_id, t.job_id,
              case when p.pilot_id is null then 'no placement sent it' else 'placement ' || p.attempt || ' of job ' || p.job_id || ' did' end)
from pilot t left join placement p on p.pilot_id = t.pilot_id
where t.job_id is not null and (p.pilot_id is null or p.job_id <> t.job_id) and exists (select from job j where j.job_id = t.job_id)
union all
select format('pilot %s is bound to job %s, and had job %s', t.pilot_id, t.job_id, a.job_id)
from pilot t join attempt a using (pilot_id) where t.job_id <> a.job_id;

-- rule: attempts are made by pilots we sent there
-- invariant: 9
-- of: attempt
select format('job %s, epoch %s: at %s/%s with pilot %s, which is of %s/%s', a.job_id, a.epoch, a.site, a.ce, a.pilot_id,
              coalesce(p.site, 'nowhere'), coalesce(p.ce, 'nothing'))
from attempt a left join pilot p using (pilot_id)
where (a.site, a.ce) is distinct from (p.site, p.ce)
  and not (p.pilot_id is null and a.offered_at < coalesce((select before from forgotten where what = 'pilot'), '-infinity'));

-- rule: private pilots have no other group's jobs
-- invariant: 9
-- of: attempt
select format('job %s, epoch %s: of %s@%s, had by pilot %s of %s', j.job_id, a.epoch, j.owner, j.owner_group, a.pilot_id,
              p.owner_group)
from attempt a join job j using (job_id) join pilot p on p.pilot_id = a.pilot_id
where p.owner_group <> '' and (p.vo, p.owner_group) is distinct from (j.vo, j.owner_group);

-- rule: a limit's counter is the number of leases that it counts
-- invariant: 10
-- of: limit_counter
select format('%s jobs with %s %s at %s: the counter says %s', coalesce(l.leases, 0), c.attribute, c.value,
              concat_ws('/', c.site, nullif(c.ce, '')), coalesce(c.running, 0))
from limit_counter c
full join (select counter_id, count(*) as leases from lease, unnest(counted) as counter_id group by counter_id) l
    using (counter_id)
where coalesce(c.running, 0) <> coalesce(l.leases, 0);

-- rule: no element got more jobs or pilots since its ad than the ad lets come
-- invariant: 10
-- of: limit_counter where allowed is not null
-- Whoever began after the ad was counted under it, for it waited for the counter's lock; of those that began before some were too.
with limited as (
    select * from limit_counter where allowed is not null
), given as (
    select counter_id, count(*) as jobs
    from attempt a join limited l on a.site = l.site and a.ce = l.ce and a.offered_at >= l.advertised_at group by counter_id
), sent as (
    select counter_id, count(*) as pilots
    from pilot p join limited l on p.site = l.site and p.ce = l.ce and p.submitted_at >= l.advertised_at group by counter_id
)
select format('%s/%s: %s jobs matched and %s pilots sent since its ad, which lets %s come; counted were %s and %s', l.site, l.ce,
              coalesce(g.jobs, 0), coalesce(s.pilots, 0), l.allowed, l.matched, l.sent)
from limited l left join given g using (counter_id) left join sent s using (counter_id)
where greatest(g.jobs, l.matched) > l.allowed or greatest(s.pilots, l.sent) > l.allowed;

-- rule: an element is as its moves left it
-- invariant: 20
-- of: ce_state
with last as (
    select distinct on (site, ce) site, ce, state, reason, said_by from ce_move order by site, ce, ce_move_id desc
), changed as (
    select distinct on (site, ce) site, ce, at from ce_move where before <> state order by site, ce, ce_move_id desc
)
select format('%s: it is %s since %s (%s, by %s); its last move led to %s (%s, by %s), its last change was at %s',
              concat_ws('/', site, nullif(ce, '')), coalesce(s.state, 'unknown'), s.since, s.reason, s.said_by,
              coalesce(m.state, 'nothing'), m.reason, m.said_by, c.at)
from ce_state s full join last m using (site, ce) left join changed c using (site, ce)
where (s.state, s.reason, s.said_by) is distinct from (coalesce(m.state, 'healthy'), coalesce(m.reason, ''), coalesce(m.said_by, ''))
   or s.since <> c.at;

-- rule: an element's moves follow from each other
-- invariant: 20
-- of: ce_move
-- Written a second time, like the moves of jobs. Of what was forgotten on purpose the beginning is not known.
with legal (before, event, state) as (
    values ('healthy', 'fail', 'backing-off'), ('backing-off', 'fail', 'backing-off'), ('backing-off', 'recover', 'healthy'),
           ('healthy', 'eat', 'quarantined'), ('backing-off', 'eat', 'quarantined'), ('quarantined', 'probe', 'probing'),
           ('probing', 'release', 'healthy'), ('probing', 'relapse', 'quarantined'),
           ('quarantined', 'unban', 'healthy'), ('probing', 'unban', 'healthy'), ('banned', 'unban', 'healthy'),
           ('draining', 'unban', 'healthy')
    union all
    select before, m.event, m.state
    from unnest(array['healthy', 'backing-off', 'quarantined', 'probing', 'banned', 'draining']) as before
    cross join (values ('ban', 'banned'), ('drain', 'draining')) as m(event, state)
), chained as (
    select *, lag(state) over (partition by site, ce order by ce_move_id) as left_as from ce_move
)
select format('%s, move %s: %s when it was %s, and then %s', concat_ws('/', m.site, nullif(m.ce, '')), m.ce_move_id, m.event,
              m.before, m.state)
from chained m left join legal l using (before, event, state)
where l.before is null
   or m.before <> coalesce(m.left_as, case when exists (select from forgotten where what = 'ce_move') then m.before else 'healthy' end);

-- rule: no offset is before the beginning, and no dead letter ahead of its consumer
-- invariant: 11
-- of: consumer_offset
select format('%s: %s[%s] is at %s', consumer, topic, partition, next_offset) from consumer_offset where next_offset < 0
union all
select format('%s: dead letter %s is of %s[%s] at %s, the consumer at %s', d.consumer, d.dead_letter_id, d.topic,
              d.partition, d.message_offset, o.next_offset)
from dead_letter d left join consumer_offset o using (cluster_id, consumer, topic, partition)
where d.message_offset >= coalesce(o.next_offset, 0);

-- rule: what waits aside is behind its consumer, its owner's, and in one place
-- invariant: 11
-- of: parked_message
select format('%s: %s[%s] at %s of "%s" waits aside, the consumer is at %s', m.consumer, m.topic, m.partition, m.message_offset,
              m.owner, coalesce(o.next_offset, 0))
from parked_message m left join consumer_offset o using (cluster_id, consumer, topic, partition)
where m.message_offset >= coalesce(o.next_offset, 0) or m.owner = ''
union all
select format('%s: %s[%s] at %s waits aside, and is dead letter %s', m.consumer, m.topic, m.partition, m.message_offset, d.dead_letter_id)
from parked_message m join dead_letter d using (cluster_id, consumer, topic, partition, message_offset);

-- rule: an operator has looked at every gap in a log
-- invariant: 11
-- of: log_gap
select format('gap %s: %s did not handle %s/%s from %s %s (%s), sent between %s and %s; %s messages are kept aside', g.log_gap_id, g.consumer,
              g.topic, g.partition, g.first_offset, coalesce('to ' || g.until_offset - 1, 'on'), g.cause, coalesce(g.handled_at::text, 'the beginning'),
              coalesce(g.goes_on_at, g.seen_at),
              (select count(*) from dead_letter d where d.log_gap_id = g.log_gap_id and d.replayed_at is null))
from log_gap g where g.acknowledged_at is null;

-- rule: every dead letter says what was wrong, and is tried again when that is ordered
-- invariant: 11
-- of: dead_letter
select format('dead letter %s of %s has no reason', dead_letter_id, consumer) from dead_letter where error = ''
union all
select format('dead letter %s of %s was to be tried again at %s', d.dead_letter_id, d.consumer, d.replay_requested_at)
from dead_letter d
where d.replayed_at is null and d.replay_requested_at < now() - interval '5 min'
  and exists (select from service_instance i where d.consumer = any (i.consumers) and i.heartbeat_at > now() - interval '10 s'
                                                   and i.started_at < now() - interval '5 min');

-- rule: nothing waits aside for an hour while it is served
-- invariant: 11
-- of: parked_message
select format('%s: %s[%s] at %s of %s waits aside since %s', m.consumer, m.topic, m.partition, m.message_offset, m.owner, m.parked_at)
from parked_message m
where m.parked_at < now() - interval '1 h'
  and exists (select from service_instance i where m.consumer = any (i.consumers) and i.heartbeat_at > now() - interval '10 s'
                                                   and i.started_at < now() - interval '1 h');

-- rule: no message waits for ever while services run
-- invariant: 11
-- of: outbox
select format('outbox %s: %s message(s) to %s, due since %s', outbox_id, cardinality(keys), topic, due_at)
from outbox
where due_at < now() - interval '60 s'
  and exists (select from service_instance where heartbeat_at > now() - interval '10 s' and started_at < now() - interval '60 s');

-- rule: an attempt is charged once, when it ends, and for no less than nothing
-- invariant: 12
-- of: attempt
select format('job %s, epoch %s: charged %s times, outcome %s, cpu %s + %s s, wall %s s', job_id, epoch, times, outcome,
              cpu_user, cpu_system, wall)
from (select job_id, epoch, count(*) as times, min(outcome) as outcome, sum(cpu_user_seconds) as cpu_user,
             sum(cpu_system_seconds) as cpu_system, sum(wall_seconds) as wall, bool_or(ended_at is not null) as ended,
             num_nonnulls(sum(cpu_user_seconds), sum(cpu_system_seconds), sum(wall_seconds)) as given
      from attempt group by job_id, epoch) a
where times > 1
   or given <> case when ended then 3 else 0 end
   or least(cpu_user, cpu_system, wall) < 0;

-- rule: what never began is charged no time
-- invariant: 12
-- of: attempt where started_at is null and ended_at is not null
select format('job %s, epoch %s: never began (%s), and is charged cpu %s + %s s, wall %s s', job_id, epoch, reason,
              cpu_user_seconds, cpu_system_seconds, wall_seconds)
from attempt
where started_at is null and ended_at is not null and greatest(cpu_user_seconds, cpu_system_seconds, wall_seconds) > 0;

-- rule: the usage of an hour is that of the attempts that ended in it
-- invariant: 12
-- of: usage_hour
-- Of hours whose attempts are all there still. Sums are of doubles in any order, and equal but for their last digits.
with bounds as (
    select greatest(began_at, date_trunc('hour', (select before from forgotten where what = 'attempt'), 'UTC') + interval '1 h') as low,
           closed_until as high
    from usage_rollup
), hours as (
    select hour, sum(attempts) as attempts, sum(cpu_seconds) as cpu, sum(wall_seconds) as wall
    from usage_hour, bounds where hour >= low group by hour
), ended as (
    select date_trunc('hour', ended_at, 'UTC') as hour, count(*) as attempts, sum(cpu_user_seconds + cpu_system_seconds) as cpu,
           sum(wall_seconds) as wall
    from ended_attempt, bounds where ended_at >= low and ended_at < high and outcome <> 'withdrawn' group by 1
)
select format('the hour %s: %s attempts used %s s of CPU in %s s, and %s attempts with %s s in %s s are accounted for',
              hour, e.attempts, e.cpu, e.wall, h.attempts, h.cpu, h.wall)
from hours h full join ended e using (hour)
where h.attempts is distinct from e.attempts
   or abs(coalesce(h.cpu, 0) - coalesce(e.cpu, 0)) > 1e-6 * (1 + coalesce(e.cpu, 0))
   or abs(coalesce(h.wall, 0) - coalesce(e.wall, 0)) > 1e-6 * (1 + coalesce(e.wall, 0));

-- rule: a stop is asked only of a job that a pilot has
-- invariant: 13
-- of: job
select format('job %s is %s, yet is to be stopped for %s', job_id, state, stop_requested)
from job where stop_requested <> '' and state <> all (array['Matched', 'Running', 'Stalled', 'Completing', 'Completed']);

-- rule: what its user had killed ends Killed
-- invariant: 13
-- of: job_event where reason = 'KILLED_BY_USER'
select format('job %s, move %s: %s, and then %s', job_id, seq, reason, state)
from job_event where reason = 'KILLED_BY_USER' and state <> 'Killed';

-- rule: leases that have run out are taken back while services run
-- invariant: 19
-- of: lease
select format('job %s, epoch %s: the lease ended at %s', job_id, epoch, expires_at)
from lease
where expires_at < now() - interval '60 s'
  and exists (select from service_instance where service = 'job_manager' and heartbeat_at > now() - interval '10 s'
                                                 and started_at < now() - interval '60 s');

-- rule: owner, group and VO are those of the queue, for ever
-- invariant: 14
-- of: job
select format('job %s is %s@%s of %s, its queue %s is of %s@%s of %s', j.job_id, j.owner, j.owner_group, j.vo, j.tq_id,
              t.owner, t.owner_group, t.vo)
from job j left join task_queue t using (tq_id)
where (j.owner, j.owner_group, j.vo) is distinct from (t.owner, t.owner_group, t.vo)
union all
select format('sweep %s is %s@%s of %s, its queue %s is of %s@%s of %s', s.first, s.owner, s.owner_group, s.vo, s.tq_id,
              t.owner, t.owner_group, t.vo)
from sweep s left join task_queue t using (tq_id)
where (s.owner, s.owner_group, s.vo) is distinct from (t.owner, t.owner_group, t.vo)
union all
select format('job %s is %s@%s of %s, its sweep %s is of %s@%s of %s', j.job_id, j.owner, j.owner_group, j.vo, s.first,
              s.owner, s.owner_group, s.vo)
from sweep s join job j on j.job_id between s.first and s.last
where (j.owner, j.owner_group, j.vo) is distinct from (s.owner, s.owner_group, s.vo)
union all
select format('the trigger %s, which keeps owners as they are, is off', t.name)
from (values ('job_owner_is_for_ever', 'job'::regclass), ('sweep_is_for_ever', 'sweep'::regclass)) as t(name, guarded)
where not exists (select from pg_trigger where tgname = t.name and tgrelid = t.guarded and tgenabled <> 'D');

-- rule: no agreement is alive past its time
-- invariant: 24
-- of: agreement
-- By an agreement service that looks.
select format('agreement %s is %s, and its time was over at %s', a.agreement_id, a.state,
              case a.state when 'Confirmed' then a.ends_at else a.expires_at end)
from agreement a
where a.state in ('Requested', 'Temporary', 'Confirmed')
  and case a.state when 'Confirmed' then a.ends_at else a.expires_at end < now() - interval '1 min'
  and exists (select from service_instance where service = 'agreement' and heartbeat_at > now() - interval '10 s'
                                                 and started_at < now() - interval '1 min')
  and exists (select from agreement_element e where e.site = a.site and e.told_until > now());

-- rule: a calendar grants no more CPUs at a time than its element has
-- invariant: 24
-- of: agreement where state in ('Temporary', 'Confirmed') and reservation = ''
select format('%s/%s has %s CPUs, and %s are reserved at %s', e.site, e.ce, e.cpus, sum(b.cpus), a.start_at)
from agreement a
join agreement b on b.site = a.site and b.ce = a.ce and b.start_at <= a.start_at and b.ends_at > a.start_at
join agreement_element e on e.site = a.site and e.ce = a.ce
where a.state in ('Temporary', 'Confirmed') and b.state in ('Temporary', 'Confirmed') and a.reservation = '' and b.reservation = ''
group by e.site, e.ce, e.cpus, a.agreement_id, a.start_at having sum(b.cpus) > e.cpus;

-- rule: the identity that reserved is that of the job
-- invariant: 24
-- of: agreement
select format('agreement %s of %s in %s of %s is for job %s of %s in %s of %s', a.agreement_id, a.owner, a."group", a.vo, a.job_id,
              j.owner, j.owner_group, j.vo)
from agreement a join job j using (job_id)
where a.state not in ('Requested', 'Denied') and (a.owner, a."group", a.vo) <> (j.owner, j.owner_group, j.vo);
