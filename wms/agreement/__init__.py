"""Agreements on reservations of CPUs, after WS-Agreement: states, terms, templates, quotas and the calendar of slots."""
