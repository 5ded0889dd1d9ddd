"""Submissions of jobs: parsed, checked against limits and computing elements, stored and answered."""
