"""The demonstration: a real workload run through a whole system, with a check of its result.

`workload` divides the sources of Python's standard library among jobs. The jobs run the program `token_count`. `run` submits the jobs,
waits, and compares the result with the right one.
"""
