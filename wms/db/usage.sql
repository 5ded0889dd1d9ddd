-- name: charge
-- Add slot seconds to the usage of owners. Both figures are first reduced to their value at the later of the two times.
insert into owner_usage as u (vo, owner_group, owner, slot_seconds, at)
select c.vo, c.owner_group, c.owner, c.slot_seconds, now()
from unnest($1::text[], $2::text[], $3::text[], $4::double precision[]) as c(vo, owner_group, owner, slot_seconds)
order by c.vo, c.owner_group, c.owner
on conflict (vo, owner_group, owner) do update
set slot_seconds =
        u.slot_seconds * power(0.5::double precision, least(1000,
            extract(epoch from greatest(u.at, excluded.at) - u.at)::double precision / $5))
        + excluded.slot_seconds * power(0.5::double precision, least(1000,
            extract(epoch from greatest(u.at, excluded.at) - excluded.at)::double precision / $5)),
    at = greatest(u.at, excluded.at);

-- name: read
-- The usage of owners, reduced to its value at present.
select vo, owner_group, owner,
       slot_seconds * power(0.5::double precision, least(1000, greatest(0,
           extract(epoch from now() - at)::double precision / $1))) as slot_seconds
from owner_usage;
