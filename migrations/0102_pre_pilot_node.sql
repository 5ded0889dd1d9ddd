-- The attributes of pilots' nodes: a free slot on a node that does not meet the requirements of waiting jobs is no place for them.
alter table pilot add column node text not null default '';
comment on column pilot.node is 'What plans read of the attributes of its node, as JSON; empty: it never reported them.';
comment on column pilot.unfit is 'Unused: pilots report the attributes of their nodes, and no longer which jobs they found them unfit for.';
