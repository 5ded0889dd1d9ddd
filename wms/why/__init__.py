"""Explanations of waiting jobs: obstacles at each computing element, changes that would help, and the expected start. Pure functions.

They call the clauses by which the matcher and the pilot planner decide. So an explanation cannot contradict a decision.
"""
