"""Agreements, after WS-Agreement, by which a site reserves CPUs for a job: states, terms, templates, quotas and calendar."""
