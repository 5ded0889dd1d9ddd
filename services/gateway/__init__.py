"""The gateway: the HTTPS door for users. It has no rights of its own and passes each user's token on to the services."""
