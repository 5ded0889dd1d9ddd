"""The gateway: the HTTPS entrance for users. It has no rights of its own and passes each user's token on to the services."""
