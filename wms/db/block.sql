-- name: select
-- The blocks with the first, or the newest, jobs in the user's scope that a selector selects. Job names are compared later.
select b.first, b.last, b.sweep, b.state, b.event_seq, b.reason, b.changed_at, b.history::text as history,
       s.description_id, s.tq_id, s.owner, s.owner_group, s.vo, s.name, s.user_priority, s.max_attempts, s.submitted_at,
       s.parameters, s.job_group
from unnest($1::bigint[], $2::bigint[]) as r(low, high)
join block b on int8range(b.first, b.last, '[]') && int8range(r.low, r.high, '[]')
join sweep s on s.first = b.sweep
where ($3::text is null or s.owner = $3) and ($4::text is null or s.owner_group = $4) and ($5::text is null or s.vo = $5)
  and ($6::text is null or s.owner = $6) and ($7::text[] is null or b.state = any ($7)) and $8::text is null
  and ($9::text is null or s.job_group = $9) and ($10::timestamptz is null or b.changed_at >= $10)
group by b.first, s.first
order by case when $11 then -b.first else b.first end limit $12;

-- name: count
-- The number of these jobs by state and reason.
select b.state, b.reason, sum(least(b.last, r.high) - greatest(b.first, r.low) + 1)::bigint as jobs
from unnest($1::bigint[], $2::bigint[]) as r(low, high)
join block b on int8range(b.first, b.last, '[]') && int8range(r.low, r.high, '[]')
join sweep s on s.first = b.sweep
where ($3::text is null or s.owner = $3) and ($4::text is null or s.owner_group = $4) and ($5::text is null or s.vo = $5)
  and ($6::text is null or s.owner = $6) and ($7::text[] is null or b.state = any ($7)) and $8::text is null
  and ($9::text is null or s.job_group = $9) and ($10::timestamptz is null or b.changed_at >= $10)
group by b.state, b.reason;

-- name: lock_selected
-- Lock the sweeps of these blocks: a block is cut only by a transaction that has locked its sweep.
select s.first from sweep s
where s.first in (
    select b.sweep
    from unnest($1::bigint[], $2::bigint[]) as r(low, high)
    join block b on int8range(b.first, b.last, '[]') && int8range(r.low, r.high, '[]')
    join sweep s on s.first = b.sweep
    where ($3::text is null or s.owner = $3) and ($4::text is null or s.owner_group = $4) and ($5::text is null or s.vo = $5)
      and ($6::text is null or s.owner = $6) and ($7::text[] is null or b.state = any ($7)) and $8::text is null
      and ($9::text is null or s.job_group = $9) and ($10::timestamptz is null or b.changed_at >= $10)
)
order by s.first for update;

-- name: of_locked
-- The selected blocks of locked sweeps.
select b.first, b.last, b.sweep, b.state, b.event_seq, b.reason, b.changed_at, b.history::text as history,
       s.description_id, s.tq_id, s.owner, s.owner_group, s.vo, s.name, s.user_priority, s.max_attempts, s.submitted_at,
       s.parameters, s.job_group
from unnest($1::bigint[], $2::bigint[]) as r(low, high)
join block b on int8range(b.first, b.last, '[]') && int8range(r.low, r.high, '[]')
join sweep s on s.first = b.sweep
where ($3::text is null or s.owner = $3) and ($4::text is null or s.owner_group = $4) and ($5::text is null or s.vo = $5)
  and ($6::text is null or s.owner = $6) and ($7::text[] is null or b.state = any ($7)) and $8::text is null
  and ($9::text is null or s.job_group = $9) and ($10::timestamptz is null or b.changed_at >= $10)
  and b.sweep = any ($11::bigint[])
group by b.first, s.first order by b.first;

-- name: of_jobs
-- The blocks that these jobs are in.
select b.first, b.last, b.sweep, b.state, b.event_seq, b.reason, b.changed_at, b.history::text as history,
       s.description_id, s.tq_id, s.owner, s.owner_group, s.vo, s.name, s.user_priority, s.max_attempts, s.submitted_at,
       s.parameters, s.job_group
from unnest($1::bigint[]) as w(job_id)
join block b on int8range(b.first, b.last, '[]') @> w.job_id
join sweep s on s.first = b.sweep
group by b.first, s.first order by b.first;

-- name: lock_waiting
-- Lock the sweeps with some of these jobs waiting in blocks. A transaction that gives rows to other jobs of the sweep ends soon, so that
-- its lock is awaited even where locks of jobs are not.
with patient as materialized (select set_config('lock_timeout', '6s', true))
select s.first from patient, sweep s
where s.first in (
    select b.sweep from unnest($1::bigint[]) as w(job_id)
    join block b on int8range(b.first, b.last, '[]') @> w.job_id where b.state = 'Waiting'
)
order by s.first for update of s;

-- name: insert_jobs
-- Insert rows for jobs that leave blocks, as if they had had rows from the beginning, and the history entries that the rows do not hold.
with leaving as (
    select l.job_id, l.name, l.parameters, b.sweep, b.state, b.event_seq, b.reason, b.changed_at, b.history
    from unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[]) as l(block, job_id, name, parameters)
    join block b on b.first = l.block
), born as (
    insert into job (job_id, description_id, array_index, tq_id, owner, owner_group, vo, name, job_group, user_priority,
                     max_attempts, submitted_at, state, rare_state, event_seq, reason, changed_at, parameters)
    select l.job_id, s.description_id, l.job_id - s.first, s.tq_id, s.owner, s.owner_group, s.vo, l.name,
           s.job_group, s.user_priority, s.max_attempts, s.submitted_at, l.state,
           nullif(l.state, 'Waiting'), l.event_seq, l.reason, l.changed_at, l.parameters::jsonb
    from leaving l join sweep s on s.first = l.sweep
)
insert into job_move (job_id, seq, at, before, event, state, epoch, reason, text, source)
select l.job_id, m.seq, m.at, m.before, m.event, m.state, 0, m.reason, m.text, m.source
from leaving l
cross join lateral jsonb_to_recordset(l.history)
    as m(seq integer, at timestamptz, before text, event text, state text, reason text, text text, source text)
where l.event_seq > 2 and m.seq > 2;

-- name: delete
-- Delete blocks that are cut or moved; `insert` stores the resulting blocks.
delete from block where first = any ($1::bigint[]);

-- name: insert
-- Store the blocks that result from a cut or a move.
insert into block (first, last, sweep, state, event_seq, reason, changed_at, history)
select b.first, b.last, b.sweep, b.state, b.event_seq, b.reason, b.changed_at, b.history::jsonb
from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[], $5::integer[], $6::text[], $7::timestamptz[], $8::text[])
    as b(first, last, sweep, state, event_seq, reason, changed_at, history);

-- name: waiting
-- The blocks that wait in these queues, or in all.
select s.tq_id, s.user_priority, b.first, b.last
from block b join sweep s on s.first = b.sweep
where b.state = 'Waiting' and ($1::bigint[] is null or s.tq_id = any ($1)) order by b.first;
