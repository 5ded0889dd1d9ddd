"""The rules of matching, as pure functions: how jobs are grouped into task queues, which resources they fit, and their weight."""
