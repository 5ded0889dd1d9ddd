"""Replays: traces of real systems, read, submitted again to this one, and measured.

`swf` reads a trace and `trace_file` its file. `plan` makes jobs and sites of it, `run` submits them, each as its `owners` do,
and `report` counts what became of them, by `figures`. `record` writes down what this system ran. `workloads` reads traces
and recordings for a simulation.
"""
