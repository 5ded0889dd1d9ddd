-- Who sent which archive of input files: a submission through a gateway may refer to its own alone.
create table sandbox_claim (
    sha256 text not null,
    owner text not null,
    owner_group text not null,
    vo text not null,
    claimed_at timestamptz not null default now(),
    primary key (sha256, owner, owner_group, vo)
);
comment on table sandbox_claim is 'An archive of the sandbox store that an owner sent whole, and to which the owner''s submissions may refer.';

-- Jobs that are here refer to what their owners sent.
insert into sandbox_claim (sha256, owner, owner_group, vo)
select distinct r.value #>> '{}', j.owner, j.owner_group, j.vo
from job j join description d using (description_id)
cross join lateral jsonb_path_query(d.body::jsonb, '$.input_sandbox[*].sha256') as r(value)
union
select distinct r.value #>> '{}', s.owner, s.owner_group, s.vo
from sweep s join description d using (description_id)
cross join lateral jsonb_path_query(d.body::jsonb, '$.input_sandbox[*].sha256') as r(value)
union
select distinct left(v.value, 64), s.owner, s.owner_group, s.vo
from sweep s join description d using (description_id)
cross join lateral jsonb_array_elements_text(d.body::jsonb -> 'input_parameters') as n(name)
join parameter p using (description_id)
cross join lateral jsonb_array_elements_text(p.columns::jsonb -> n.name) as v(value)
where d.body::text like '%"input_parameters"%';
