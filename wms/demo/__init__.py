"""The demonstration: a real workload that is run through a whole system, and whose result is checked.

`workload` divides the sources of Python's standard library among jobs. The jobs run the program `token_count`. `run` submits the jobs,
waits, and compares the result with the right one.
"""
