"""Simulates a workload on a virtual clock, with the decision functions of the matcher and the pilot submitter."""
