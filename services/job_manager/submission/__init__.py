"""Submissions: parsed, checked against quotas and against the sites' offers, stored and answered."""
