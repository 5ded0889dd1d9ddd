alter table pilot add column cancelled_at timestamptz;
comment on column pilot.cancelled_at is 'When we cancelled it. That it never began is then no fault of its element.';
