"""Explanations of waiting jobs: obstacles at each computing element, changes that would help, and the expected start. Pure functions.

They call the same functions by which the matcher and the pilot submitter decide. So an explanation cannot contradict a decision.
"""
