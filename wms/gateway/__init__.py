"""What all clients of a gateway share: checks of its address, and the errors that its refusals mean."""
