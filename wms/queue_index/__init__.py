"""The engine behind one class, `QueueIndex`: all waiting jobs in memory, and a fair draw of one that fits a resource."""
