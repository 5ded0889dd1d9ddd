-- name: insert
-- Keep the predictions of new placements.
insert into prediction (job_id, attempt, part, site, ce, source, class, bytes, seconds, low, high, model_seconds)
select n.job_id, p.attempt, n.part, n.site, n.ce, n.source, n.class, n.bytes, n.seconds, n.low, n.high, n.model_seconds
from unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::float8[],
            $9::float8[], $10::float8[], $11::float8[])
    as n(job_id, part, site, ce, source, class, bytes, seconds, low, high, model_seconds)
join placement p on p.job_id = n.job_id and p.state = 'Ordered'
on conflict do nothing;

-- name: score
-- Compare predictions with what happened, once their placements are over: waiting until the job was given to the placement's
-- pilot, stage-in until it started, execution by the clock, stage-out until its end.
with open as (
    select distinct job_id, attempt from prediction where scored_at is null order by job_id, attempt limit $1
), told as (
    select o.job_id, o.attempt, p.created_at, a.offered_at, a.accepted_at, a.started_at, a.ended_at, a.wall_seconds,
           a.outcome = 'done' as done
    from open o
    join placement p using (job_id, attempt)
    left join lateral (
        select * from ended_attempt e
        where e.job_id = o.job_id and e.pilot_id = p.pilot_id and e.started_at is not null order by e.epoch desc limit 1
    ) a on true
    where p.state in ('Failed', 'Ended', 'Abandoned')
), gone as (
    -- Their jobs were deleted.
    select o.job_id, o.attempt from open o left join placement p using (job_id, attempt) where p.job_id is null
), scored as (
    update prediction q
    set scored_at = now(), actual = case when t.started_at is null then null else case q.part
        when 'waiting' then greatest(0, extract(epoch from t.offered_at - t.created_at))
        when 'stage_in' then greatest(0, extract(epoch from t.started_at - coalesce(t.accepted_at, t.offered_at)))
        when 'execution' then case when t.done then t.wall_seconds end
        when 'stage_out' then
            case when t.done then greatest(0, extract(epoch from t.ended_at - t.started_at) - t.wall_seconds) end
        when 'delivery' then case when t.done then greatest(0, extract(epoch from t.ended_at - t.created_at)) end
    end end
    from told t where q.job_id = t.job_id and q.attempt = t.attempt and q.scored_at is null
    returning 1
), closed as (
    update prediction q set scored_at = now() from gone g
    where q.job_id = g.job_id and q.attempt = g.attempt and q.scored_at is null
    returning 1
)
select (select count(*) from scored) + (select count(*) from closed);

-- name: calibration
-- How true predictions were, by place and predictor. Ratios are of truth and prediction, both from $3 seconds before the beginning on.
select site, part, source, count(*) as predictions, count(actual) as scored,
       avg(case when actual between low and high then 1.0 else 0.0 end) filter (where actual is not null)::float8 as covered,
       (percentile_cont(0.5) within group (order by (actual + $3) / (seconds + $3)))::float8 as ratio,
       (percentile_cont(0.5) within group (order by abs(actual - seconds)))::float8 as error_seconds
from (
    select case when $1::text in ('site', 'both') then site else '' end as site, part,
           case when $1::text in ('predictor', 'both') then source else '' end as source, seconds, low, high, actual
    from prediction
) p
group by site, part, source order by site, part, source limit $2;

-- name: waits
-- How long placed jobs and pilots waited lately at each element, the latest first.
select site, ce, seconds, at from (
    select site, ce, extract(epoch from started_at - submitted_at)::float8 as seconds, submitted_at as at,
           row_number() over (partition by site, ce order by submitted_at desc) as n
    from pilot where started_at >= submitted_at and submitted_at > now() - make_interval(secs => $1)
) w
where n <= $2 order by site, ce, at desc;

-- name: run_times
-- How long jobs of these classes ran lately, and where, the latest first.
select c.class, r.site, r.ce, r.actual as seconds, r.made_at as at
from unnest($1::text[]) as c(class), lateral (
    select site, ce, actual, made_at from prediction
    where class = c.class and part = 'execution' and actual is not null order by made_at desc limit $2
) r;

-- name: runs_there
-- How long placed jobs of any kind ran lately at each element, the latest first.
select site, ce, seconds from (
    select site, ce, actual as seconds, made_at as at, row_number() over (partition by site, ce order by made_at desc) as n
    from prediction where part = 'execution' and actual is not null and made_at > now() - make_interval(secs => $1)
) r
where n <= $2 order by site, ce, at desc;

-- name: corrections
-- How predictors erred lately: quantiles of truth over prediction, both from $3 seconds before the beginning on, by site and for all.
select site, part, source, count(*) as count,
       (percentile_cont(array[0.05, 0.5, 0.95]) within group (order by ratio))::float8[] as quantiles
from (
    select p.site, p.part, p.source, (p.actual + $3) / (p.model_seconds + $3) as ratio
    from (
        select site, part, source, actual, model_seconds,
               row_number() over (partition by site, part, source order by made_at desc) as n
        from prediction where actual is not null and made_at > now() - make_interval(secs => $1)
    ) p where p.n <= $2
) r
group by grouping sets ((site, part, source), (part, source)) order by site nulls first, part, source;

-- name: transfers
-- How long files of known size took lately to come to each site and to leave it, the latest first: between it and one storage host
-- as attempts measured it, and all files of a placed job together, whose host is empty.
select site, part, host, bytes, seconds, at from (
    select site, part, host, bytes, seconds, at, row_number() over (partition by site, part, host order by at desc) as n
    from (
        select site, part, host, bytes, seconds, at from transfer where at > now() - make_interval(secs => $1)
        union all
        select site, part, '', bytes, actual, made_at from prediction
        where part in ('stage_in', 'stage_out') and bytes > 0 and actual > 0 and made_at > now() - make_interval(secs => $1)
    ) m
) t
where n <= $2 order by site, part, at desc limit $3;

-- name: forget
-- Delete old predictions.
delete from prediction where ctid = any (array(
    select ctid from prediction where made_at < now() - make_interval(secs => $1) order by made_at limit $2
));
