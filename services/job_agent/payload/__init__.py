"""One payload from its directory to its end: started by the shepherd, watched, ended with the reason named."""
