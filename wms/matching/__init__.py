"""The rules of matching: how waiting jobs are grouped, which task queues fit a resource, how heavy they are. All pure."""
