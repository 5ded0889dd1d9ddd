"""The gateway: the system's HTTPS API for users and pilots. It has no rights of its own; services check each request by the sender's token."""
