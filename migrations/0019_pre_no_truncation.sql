-- What comes and goes by the thousand each second uses the same pages again. To give the last ones back to the disk, vacuum
-- would lock the whole table, and every match would wait for it.

alter table outbox set (vacuum_truncate = false, toast.vacuum_truncate = false);
alter table lease set (vacuum_truncate = false);
alter table block set (vacuum_truncate = false);
alter table consumer_offset set (vacuum_truncate = false);
alter table limit_counter set (vacuum_truncate = false);
alter table waiting_room set (vacuum_truncate = false);
