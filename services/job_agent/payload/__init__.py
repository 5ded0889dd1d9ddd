"""Runs a payload, the program of one job: prepares its directory, starts it, watches it, ends it and says why it ended."""
