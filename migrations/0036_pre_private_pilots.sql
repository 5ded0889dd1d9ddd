-- Private pilots: whom a pilot serves, who ordered pilots of their own, and which groups are sent some for their work.

alter table pilot add column owner_group text not null default '';
comment on column pilot.owner_group is 'Of a private pilot whose jobs it takes: this group''s; empty: any of its VO.';
alter table pilot add column owner text not null default '';
comment on column pilot.owner is 'And there this owner''s, unless the group shares its jobs; empty: all of the group''s.';
alter table pilot add column order_id bigint;
create index pilot_of_order on pilot (order_id) where order_id is not null;

create table pilot_order (
    order_id bigint generated always as identity primary key,
    vo text not null,
    owner_group text not null,
    owner text not null,
    -- The pilots are the whole group's, which shares its jobs, and not this owner's.
    group_wide boolean not null,
    -- Empty: wherever there is room.
    site text not null,
    ce text not null,
    wanted integer not null check (wanted > 0),
    ordered_at timestamptz not null default now(),
    expires_at timestamptz not null,
    withdrawn_at timestamptz,
    -- Why no pilot could be sent for it at the last look.
    held text not null default ''
);
comment on table pilot_order is 'Private pilots that users ordered: those that are missing are sent until the order expires or is withdrawn.';
create index pilot_order_open on pilot_order (expires_at) where withdrawn_at is null;

alter table share add column private_pilots boolean not null default false;
comment on column share.private_pilots is 'For the waiting jobs of this group private pilots are sent.';
