"""Awa: a queue of jobs in Postgres alone, whose workers are tasks of one process and match nothing."""
