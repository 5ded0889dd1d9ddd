"""Why a job waits: the obstacles at each computing element, changes that would help, and when it may start. Pure.

Everything here calls the clauses by which the matcher and the planner of pilots decide, so that an explanation
cannot disagree with what happens.
"""
