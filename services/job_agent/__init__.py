"""The job agent: the program that runs in a pilot. It requests jobs, runs and watches their payloads, and reports on them."""
