"""The matcher: offers waiting jobs, under leases, to job agents (the programs that pilots run) that ask for work."""
