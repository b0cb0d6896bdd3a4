"""Simulated machines: a fleet of ramdisks for load and failure tests, and the demo. Knows the service by HTTP only."""
