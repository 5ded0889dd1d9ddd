-- How many processes have died with messages in hand: a message is set aside for the second death, as the first may have had another cause.

alter table batch_in_hand add column deaths smallint not null default 0;
alter table parked_message add column deaths smallint not null default 0;
comment on column batch_in_hand.deaths is 'How many processes are known to have died with these messages in hand, before the one that has them now.';
comment on column parked_message.deaths is 'How many processes are known to have died with it in hand, before the one that has it now.';
