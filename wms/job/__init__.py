"""The life of a job: its states, the allowed state changes, the reasons for them, and the decisions that cause them."""
