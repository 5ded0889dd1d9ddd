-- How long pilots live that are sent to an element: its queue may give a job days, and its pilots may be gone in hours.

alter table ad add column pilot_seconds double precision check (pilot_seconds > 0);
comment on column ad.pilot_seconds is 'After so long a pilot that is sent there takes no more jobs, as who sends pilots says; null if nobody said.';
