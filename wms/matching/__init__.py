"""The rules of matching as pure functions: grouping of jobs into task queues, their fit to resources, and their weights."""
