"""Answers to what users ask: jobs, queues, sites, pilots, shares, and why a job waits."""
