"""What is needed around the system: samples of configuration, and a testbed of real middleware."""
