-- All keys are computed anew, and queues with one key become one (wms/db/queue_keys.py).
comment on column task_queue.key is 'The digest of the requirements, the case of names aside (wms/matching/grouping.py).';
