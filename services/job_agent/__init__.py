"""The job agent: in the pilot, asks for work, runs payloads, watches and reports."""
