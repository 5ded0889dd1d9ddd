-- Where in the whole output the stored end of it begins. So who follows it knows what was shown before.
alter table ended_attempt add column stdout_from bigint, add column stderr_from bigint;
comment on column ended_attempt.stdout_from is
    'How many bytes were printed before stdout_tail; null: none before a short one, not known before a long one.';
comment on column ended_attempt.stderr_from is 'The same of stderr_tail.';
