"""Submissions: read whole, checked against limits and against what sites offer, stored and answered."""
