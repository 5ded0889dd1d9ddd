"""What a service runs in: configuration, clock, signals, loops, heartbeat."""
