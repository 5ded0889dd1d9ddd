-- Ads tell what expressions may look at, and the sites' own: kept beside the element, which most of who reads ads is after.
alter table ad
    add column attributes jsonb not null default '{}',
    add column expressions jsonb not null default '{}',
    add column requirements text not null default '',
    add column rank text not null default '';
comment on column ad.attributes is 'Values by the names of GLUE 1.x, for the expressions of jobs.';
comment on column ad.expressions is 'Attributes that are expressions, as text.';
comment on column ad.requirements is 'The expression that the site demands to be true of a job; empty if there is none.';
comment on column ad.rank is 'The expression by which the site ranks jobs; empty if there is none.';
