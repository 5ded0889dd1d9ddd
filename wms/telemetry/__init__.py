"""What the system says of itself: logs."""
