"""The pilot submitter: keeps pilots on computing elements by demand and follows them."""
