"""One payload, the program of a job: prepared in its directory, started, watched, and ended with a reason."""
