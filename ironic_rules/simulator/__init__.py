"""Simulated machines: a fleet of ramdisks for load and failure tests, and the demo. They use only the REST API."""
