-- name: insert
-- Store an order for private pilots that is valid for $8 seconds.
insert into pilot_order (vo, owner_group, owner, group_wide, site, ce, wanted, expires_at)
values ($1, $2, $3, $4, $5, $6, $7, now() + make_interval(secs => $8)) returning order_id;

-- name: open
-- Valid orders that lack pilots. A pilot that ended before it started does not count as sent.
select * from (
    select o.order_id, o.vo, o.owner_group, o.owner, o.group_wide, o.site, o.ce, o.held, o.wanted - (
        select count(*) from pilot p where p.order_id = o.order_id and (p.ended_at is null or p.started_at is not null)
    ) as missing
    from pilot_order o where o.withdrawn_at is null and o.expires_at > now()
) f
where missing > 0 order by order_id;

-- name: missing
-- The number of one owner's orders that lack pilots, and the number of pilots that they lack.
select count(*) as orders, coalesce(sum(missing), 0)::bigint as pilots from (
    select o.wanted - (
        select count(*) from pilot p where p.order_id = o.order_id and (p.ended_at is null or p.started_at is not null)
    ) as missing
    from pilot_order o
    where o.vo = $1 and o.owner_group = $2 and o.owner = $3 and o.withdrawn_at is null and o.expires_at > now()
) f
where missing > 0;

-- name: hold
-- Store why no pilot could be sent for these orders.
update pilot_order o set held = u.held from unnest($1::bigint[], $2::text[]) as u(order_id, held) where o.order_id = u.order_id;

-- name: list
-- Orders for a list, newest first, with the numbers of their pilots.
select o.order_id, o.vo, o.owner_group, o.owner, o.group_wide, o.site, o.ce, o.wanted, o.ordered_at, o.expires_at, o.held,
    count(p.pilot_id) filter (where p.ended_at is null or p.started_at is not null) as sent,
    count(p.pilot_id) filter (where p.ended_at is null) as alive,
    case when o.withdrawn_at is not null then 'withdrawn'
         when count(p.pilot_id) filter (where p.ended_at is null or p.started_at is not null) >= o.wanted then 'fulfilled'
         when o.expires_at <= now() then 'expired' else 'open' end as state
from pilot_order o left join pilot p on p.order_id = o.order_id
where ($1::text is null or o.owner = $1) and ($2::text is null or o.owner_group = $2) and ($3::text is null or o.vo = $3)
group by o.order_id order by o.order_id desc offset $4 limit $5;

-- name: withdraw
-- Withdraw these orders, or all if none are named, within the user's scope.
update pilot_order set withdrawn_at = now()
where withdrawn_at is null and expires_at > now() and (cardinality($4::bigint[]) = 0 or order_id = any ($4::bigint[]))
    and ($1::text is null or owner = $1) and ($2::text is null or owner_group = $2) and ($3::text is null or vo = $3)
returning order_id;

-- name: forget
-- Delete orders that expired more than $1 seconds ago.
delete from pilot_order where order_id = any (array(
    select order_id from pilot_order where expires_at < now() - make_interval(secs => $1) order by expires_at limit $2
));
