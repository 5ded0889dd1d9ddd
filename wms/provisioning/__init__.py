"""Provisioning: how much work waits for pilots, counted once, and how many pilots go where, with the reasons."""
