"""Provisioning: how many pilots are sent to which computing elements for the waiting jobs, and the health of the elements."""
