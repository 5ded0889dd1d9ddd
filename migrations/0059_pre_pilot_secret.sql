-- Pilots over HTTPS: how a pilot's messages travel, and the hash of the one-time secret that it was sent with.

alter table pilot add column link text not null default 'kafka' constraint pilot_link check (link in ('kafka', 'gateway'));
comment on column pilot.link is 'How the pilot reaches the services: the broker itself, or a gateway.';

create table pilot_secret (
    pilot_id text primary key references pilot on delete cascade,
    digest bytea not null constraint pilot_secret_digest check (octet_length(digest) = 32),
    expires_at timestamptz not null,
    exchange_id text,
    exchanged_at timestamptz,
    refusals integer not null default 0,
    constraint pilot_secret_exchange check ((exchange_id is null) = (exchanged_at is null))
);
comment on table pilot_secret is 'The one-time secrets of pilots, by their SHA-256: until when each may be exchanged, in which exchange it was, and how often it was refused since.';
