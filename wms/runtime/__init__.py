"""The runtime of services: configuration, clock, signals, periodic loops, heartbeat."""
