"""The resource broker: chooses and reserves the sites of jobs whose users care when they end."""
