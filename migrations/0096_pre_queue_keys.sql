-- All keys are computed anew: the case of a job's type and tags counts, since expressions of sites can tell it apart.
comment on column task_queue.key is 'The digest of the requirements, equal for those that all clauses and expressions see alike (wms/matching/grouping.py).';
