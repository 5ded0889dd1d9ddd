"""The life of a job: its states, the allowed moves between them, the reasons for moves, and the decisions."""
