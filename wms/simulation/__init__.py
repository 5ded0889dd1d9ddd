"""Simulation: a workload played through the matcher's and the pilot submitter's own functions, on a clock that is made up."""
