"""The runtime of services: configuration, clock, signals, loops, heartbeat."""
