"""Loops that keep the tables right: leases taken back, reasons kept, canaries sent, old history forgotten."""
