"""The job agent as one file, which carries its dependencies: built here, started and unpacked on nodes."""
