"""The pilot submitter: sends pilots to computing elements where jobs wait that they could run, and follows them to their end."""
