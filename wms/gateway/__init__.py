"""What all who speak with a gateway share: its address, and what it says of requests that it refuses."""
