"""The job agent, which runs inside a pilot: requests jobs, runs and watches their payloads, and reports on them."""
