"""A job's life: its states, the moves between them, and the reasons it gives."""
