"""The queue index of a matcher (`QueueIndex`): all waiting jobs in memory, from which one that fits a resource is drawn."""
