"""A workload management system."""
