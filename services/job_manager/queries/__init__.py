"""Answers to queries of users: jobs, queues, sites, pilots, shares, and why a job waits."""
