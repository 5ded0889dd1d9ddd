"""HyperQueue: a server and one worker on loopback, run by the Python package that carries both."""
