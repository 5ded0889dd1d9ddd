"""The broker: decisions on where a job is delivered first, and what becomes of its placements there."""
