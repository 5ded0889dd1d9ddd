"""Benchmarks on loopback: each a module that runs alone, prints one JSON object, and stops by itself."""
