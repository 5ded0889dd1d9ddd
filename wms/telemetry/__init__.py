"""Telemetry of services: structured logs."""
