"""Replays: the jobs in traces of real systems are submitted to this system, and their waits and throughput are measured.

`swf` reads a trace and `trace_file` its file. `plan` makes jobs and sites of a trace. `run` submits the jobs through the connections of `owners`, and
`report` measures them by `figures`. `record` writes a recording of this system. `workloads` reads traces and recordings for a simulation.
"""
