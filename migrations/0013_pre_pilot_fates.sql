-- What a pilot's computing element said of it last, apart from what the pilot says of itself; and what became of it.

alter table pilot
    add column word text,
    add column word_at timestamptz,
    add column cause text,
    add constraint pilot_cause check (cause in ('PILOT_DIED', 'NODE_LOST', 'PILOT_FORGOTTEN'));
comment on column pilot.word is 'State and reason as its element, asked through its dispatcher, told them last.';
comment on column pilot.cause is 'Why it is no more, if it did not end by itself; only PILOT_DIED is certain.';
