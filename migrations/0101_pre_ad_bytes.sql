-- How much a site says of its elements, so that none says more than there is room for.
alter table ad add column bytes integer not null generated always as (
    octet_length(element::text) + octet_length(attributes::text) + octet_length(expressions::text)
    + octet_length(requirements) + octet_length(rank)
) stored;
comment on column ad.bytes is 'The bytes of the ad as text.';
