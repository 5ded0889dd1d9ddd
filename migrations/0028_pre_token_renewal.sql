-- When a pilot was sent its last token, so that none waits for its own while others get theirs again.
alter table pilot add column renewed_at timestamptz;
comment on column pilot.renewed_at is 'When it was sent a new token last; none: it never was.';
