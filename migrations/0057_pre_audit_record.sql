-- The audit trail: who ordered what, on what, with which answer. Nobody who writes it can change it.

create table audit_record (
    audit_record_id bigint generated always as identity primary key,
    at timestamptz not null default now(),
    owner text not null,
    owner_group text not null,
    vo text not null,
    token_id text not null,
    command_id text not null,
    action text not null,
    subject text not null,
    jobs int8multirange not null default '{}',
    site text not null default '',
    code text not null,
    answer text not null
);
comment on table audit_record is 'Orders and refusals, written with what they did: by whom, with which token, on which jobs or site, and the answer. Rows are never changed, and deleted only when they are old.';
create index audit_record_owner on audit_record (owner, audit_record_id);
create index audit_record_vo on audit_record (vo, audit_record_id);

create function refuse_audit_change() returns trigger language plpgsql as $$
begin
    if tg_op = 'DELETE' and old.at < now() - interval '7 days' then
        return old;
    end if;
    raise exception 'the audit trail is not rewritten: % refused', lower(tg_op) using errcode = 'insufficient_privilege';
end
$$;
create trigger audit_record_kept before update or delete on audit_record for each row execute function refuse_audit_change();
create trigger audit_record_not_emptied before truncate on audit_record for each statement execute function refuse_audit_change();
