-- What comes and goes by the thousand each second uses the same pages again. To give the last ones back to the disk, vacuum
-- would lock the whole table, and every match would wait for it.

alter table outbox set (vacuum_truncate = false, toast.vacuum_truncate = false);
alter table lease set (vacuum_truncate = false);
alter table block set (vacuum_truncate = false);
alter table consumer_offset set (vacuum_truncate = false);
alter table limit_counter set (vacuum_truncate = false);
alter table waiting_room set (vacuum_truncate = false);

-- Nor do their values tell a plan anything, which finds its rows by their keys: to look at them every few seconds, as they change
-- by more than a tenth, costs what the matches then lack.

alter table outbox set (autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 1000000);
alter table lease set (autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 1000000);
alter table consumer_offset set (autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 1000000);
