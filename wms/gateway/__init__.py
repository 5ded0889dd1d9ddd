"""What all HTTP clients of a gateway share: checks of its URL, downloads of sandboxes, and the errors that its responses mean."""
