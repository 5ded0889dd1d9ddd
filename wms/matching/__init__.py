"""The rules of matching, as pure functions: how jobs form task queues, which resources they fit, and how queues are weighted."""
