-- name: next
-- The hours that are over and not summed up yet, a day of them at most; nobody else sums them up meanwhile.
select closed_until as low,
       least(date_trunc('hour', now() - make_interval(secs => $1), 'UTC'), closed_until + interval '24 h') as high
from usage_rollup for update;

-- name: close
-- Sum up the attempts that ended in some hours. A withdrawn offer is none.
insert into usage_hour (
    hour, vo, owner_group, owner, site, outcome, reason, attempts, cpu_seconds, wall_seconds, slot_seconds, max_rss_bytes,
    rss_byte_seconds
)
select e.hour, e.vo, e.owner_group, e.owner, e.site, e.outcome, e.reason, sum(e.attempts), sum(e.cpu), sum(e.wall),
       sum(e.wall * processors_of(q.requirements)), max(e.max_rss), sum(e.byte_seconds)
from (
    select date_trunc('hour', a.ended_at, 'UTC') as hour, coalesce(j.vo, '') as vo, coalesce(j.owner_group, '') as owner_group,
           coalesce(j.owner, '') as owner, j.tq_id, a.site, a.outcome, coalesce(a.reason, '') as reason, count(*) as attempts,
           sum(a.cpu_user_seconds + a.cpu_system_seconds) as cpu, sum(a.wall_seconds) as wall, max(a.max_rss_bytes) as max_rss,
           sum(a.wall_seconds * a.max_rss_bytes) as byte_seconds
    from ended_attempt a left join job j using (job_id)
    where a.ended_at >= $1 and a.ended_at < $2 and a.outcome <> 'withdrawn'
    group by 1, 2, 3, 4, 5, 6, 7, 8
) e
left join task_queue q using (tq_id)
group by 1, 2, 3, 4, 5, 6, 7;

-- name: closed
-- Remember up to which hour attempts are summed up.
update usage_rollup set closed_until = $1;

-- name: report
-- Usage from one time to another within reach, by the columns that are asked for, outcome and reason: hours that are over, and since
-- then the attempts themselves.
with live as (
    select e.hour, e.vo, e.owner_group, e.owner, e.site, e.outcome, e.reason, e.attempts, e.cpu, e.wall,
           e.wall * processors_of(q.requirements) as slot, e.max_rss, e.byte_seconds
    from (
        select date_trunc('hour', a.ended_at, 'UTC') as hour, coalesce(j.vo, '') as vo, coalesce(j.owner_group, '') as owner_group,
               coalesce(j.owner, '') as owner, j.tq_id, a.site, a.outcome, coalesce(a.reason, '') as reason, count(*) as attempts,
               sum(a.cpu_user_seconds + a.cpu_system_seconds) as cpu, sum(a.wall_seconds) as wall, max(a.max_rss_bytes) as max_rss,
               sum(a.wall_seconds * a.max_rss_bytes) as byte_seconds
        from ended_attempt a left join job j using (job_id)
        where a.ended_at >= greatest($2::timestamptz, (select closed_until from usage_rollup)) and a.ended_at < $3::timestamptz
          and a.outcome <> 'withdrawn'
        group by 1, 2, 3, 4, 5, 6, 7, 8
    ) e
    left join task_queue q using (tq_id)
), used as (
    select hour, vo, owner_group, owner, site, outcome, reason, attempts, cpu_seconds as cpu, wall_seconds as wall,
           slot_seconds as slot, max_rss_bytes as max_rss, rss_byte_seconds as byte_seconds
    from usage_hour where hour >= $2::timestamptz and hour < $3::timestamptz
    union all select * from live
)
select case when 'vo' = any ($1::text[]) then vo else '' end as vo,
       case when 'group' = any ($1::text[]) then owner_group else '' end as owner_group,
       case when 'owner' = any ($1::text[]) then owner else '' end as owner,
       case when 'site' = any ($1::text[]) then site else '' end as site,
       case when 'month' = any ($1::text[]) then to_char(hour at time zone 'UTC', 'YYYY-MM') else '' end as month,
       case when 'day' = any ($1::text[]) then to_char(hour at time zone 'UTC', 'YYYY-MM-DD') else '' end as day,
       outcome, reason, sum(attempts)::bigint as attempts, sum(cpu) as cpu_seconds, sum(wall) as wall_seconds,
       sum(slot) as slot_seconds, max(max_rss) as max_rss_bytes, sum(byte_seconds)::double precision as rss_byte_seconds
from used
where ($4::text is null or owner = $4) and ($5::text is null or owner_group = $5) and ($6::text is null or vo = $6)
group by 1, 2, 3, 4, 5, 6, 7, 8;
