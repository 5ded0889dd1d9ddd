-- What operators ordered, and parts of long lists that no submission has used yet.

create table operator_order (
    operator_order_id bigint generated always as identity primary key,
    ordered_at timestamptz not null default now(),
    operator text not null,
    action text not null,
    subject text not null,
    reason text not null default ''
);
comment on table operator_order is 'Orders of operators that leave no other trace: who, when, what, of what.';

create table unused_part (
    description_id bigint primary key references description on delete cascade,
    owner text not null,
    command_id text not null,
    bytes bigint not null,
    kept_at timestamptz not null default now()
);
comment on table unused_part is 'Parts of long lists of parameters whose submission has not come; bounded for each owner, and soon forgotten.';
create index unused_part_owner on unused_part (owner);

insert into unused_part (description_id, owner, command_id, bytes, kept_at)
select d.description_id, s.owner, s.command_id, coalesce((s.ids ->> 'size')::bigint, 0), s.taken_at
from submission s join description d on d.description_id = (s.ids ->> 'kept')::bigint
where jsonb_typeof(s.ids -> 'kept') = 'number' and d.body::text = 'null'
on conflict do nothing;

-- A list shows how payloads begin: of one that is not compressed no more than that is read.
alter table dead_letter alter column payload set storage external;
