-- no transaction
-- Two indexes that 0061 once made, and that cost each match a write.
drop index concurrently if exists job_by_site;

drop index concurrently if exists job_unmatched;
