"""Why a job waits: what keeps it from each computing element, what would do, and when it may start. Pure.

Everything here calls the clauses that the matcher and the planner of pilots decide by, so that an explanation cannot
disagree with what happens.
"""
