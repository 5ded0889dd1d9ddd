-- Revoked tokens, subjects and pilots, which every service refuses within seconds.

create table revocation (
    kind text not null constraint revocation_kind check (kind in ('token', 'subject', 'pilot')),
    value text not null,
    revoked_at timestamptz not null default now(),
    revoked_by text not null,
    reason text not null default '',
    expires_at timestamptz,
    primary key (kind, value)
);
comment on table revocation is 'Tokens (by jti), subjects (owners) and pilots that are refused though their tokens are valid. Without an end: until lifted.';

create table revocation_revision (
    one boolean primary key default true constraint revocation_revision_one check (one),
    number bigint not null default 0
);
comment on table revocation_revision is 'The number of changes of revocations: what services compare each second.';
insert into revocation_revision default values;
