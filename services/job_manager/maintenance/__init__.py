"""Periodic work of the job manager: expired leases, wait reasons, test jobs (canaries), and deletion of old data."""
