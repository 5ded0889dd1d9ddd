-- What a waiting job is told: which computing elements are known, and why its task queue waits.

alter table ad add column withdrawn_at timestamptz;
comment on table ad is 'What computing elements offer, and lately offered; forgotten when long silent.';
