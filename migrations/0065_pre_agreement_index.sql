-- Agreements are listed by their age, and the undecided offers for an element by their owners.

create index agreement_by_age on agreement (created_at, agreement_id);
create index agreement_requested on agreement (site, ce, owner, created_at, agreement_id) where state = 'Requested';
