-- How computing elements are asked for hosts: known to all who judge where jobs could run.

create table ce_door (
    site text not null,
    ce text not null,
    -- Attributes, in lower case, that hosts may have other values of than the element's ad says.
    forwards text[] not null,
    -- What every pilot asks for there, and the site's own rules for asking more.
    terms jsonb not null,
    primary key (site, ce)
);
comment on table ce_door is 'How the pilot submitter reaches computing elements and asks them for hosts, as it is configured.';
