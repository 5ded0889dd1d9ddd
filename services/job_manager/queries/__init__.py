"""Answers users' queries about jobs, queues, sites, pilots and shares, and about why a job waits."""
