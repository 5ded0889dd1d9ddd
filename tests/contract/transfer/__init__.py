"""Storages, and the movers that reach them."""
