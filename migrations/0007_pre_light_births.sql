-- A job's queue is found, or made, and locked against removal in the transaction that the job is born in, and rows of
-- queues are never deleted: to look each one up again at every birth would cost as much as the row.
alter table job drop constraint job_tq_id_fkey;
