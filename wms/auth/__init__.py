"""Authentication by signed tokens, and authorisation: which actions a user, service, pilot or site may take on which jobs."""
