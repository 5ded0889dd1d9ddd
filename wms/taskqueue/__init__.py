"""Task queues: how waiting jobs are grouped, which queues fit a resource, how heavy they are, and which job comes first."""
