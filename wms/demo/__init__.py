"""The demonstration: a real workload run through a whole system, and its result checked.

`workload` divides the sources of Python's standard library among jobs, `token_count` is the program that these run, and `run`
submits them, waits, and compares the result with the right one.
"""
