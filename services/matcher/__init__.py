"""The matcher: gives an asking job agent jobs from task queues, under leases."""
