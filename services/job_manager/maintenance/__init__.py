"""Maintenance loops: expired leases, wait reasons, canaries, retention."""
