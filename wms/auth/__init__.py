"""Authentication by signed tokens, and authorisation: which actions a principal may take on which jobs."""
