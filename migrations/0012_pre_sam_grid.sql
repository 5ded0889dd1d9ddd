-- What the newest ad of a computing element lets come until the next, beside the other counts of all jobs there, under the
-- same lock.

alter table limit_counter
    add column allowed integer check (allowed >= 0),
    add column allowed_until timestamptz,
    add column advertised_at timestamptz,
    add column matched integer not null default 0,
    add column sent integer not null default 0,
    add constraint limit_counter_matched_within check (allowed is null or matched <= allowed),
    add constraint limit_counter_sent_within check (allowed is null or sent <= allowed);
comment on column limit_counter.allowed is 'So many jobs, and so many pilots, the element''s ad lets come until the next; null: it states no limit.';
comment on column limit_counter.allowed_until is 'When the ad is forgotten; from then on nothing comes until the next.';
comment on column limit_counter.advertised_at is 'When the count of this ad began, by our clock, under the lock: who began later was counted by it.';
comment on column limit_counter.matched is 'Jobs given to pilots of the element since the ad.';
comment on column limit_counter.sent is 'Pilots sent to the element since the ad.';

alter table ad add column digest bytea;
comment on column ad.digest is 'Of all that the ad says, its time aside: an ad that says nothing new only renews its life.';

create index pilot_ended on pilot (ended_at) where ended_at is not null;
