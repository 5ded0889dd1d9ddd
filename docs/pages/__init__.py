"""One module a generated page."""
