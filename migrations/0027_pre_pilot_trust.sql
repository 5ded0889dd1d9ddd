-- What a pilot may take, how long its token lasts, and whether anybody forged orders to it.
alter table pilot
    add column sent_slots integer,
    add column token_until timestamptz,
    add column refused_orders integer not null default 0;
comment on column pilot.sent_slots is 'The slots that it was sent with, whatever it says of itself since.';
comment on column pilot.token_until is 'When the token ends with which it spoke last; none: it has not spoken yet.';
comment on column pilot.refused_orders is 'Messages to it that no service had signed: any says that somebody forges orders.';
update pilot set sent_slots = slots;
