"""What every service process needs to run: configuration, clock, signals, periodic loops and heartbeat."""
