"""The matcher: offers jobs of task queues to job agents that ask, under leases."""
