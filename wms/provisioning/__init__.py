"""Provisioning: the waiting work, counted once, and the pilots to be sent for it, with the reasons."""
