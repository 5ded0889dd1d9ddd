"""The in-memory index of all waiting jobs, `QueueIndex`, which draws by weight a job that fits a resource."""
