"""The agreement service of a site: decides on offers to reserve CPUs, and holds, moves and releases the reservations."""
