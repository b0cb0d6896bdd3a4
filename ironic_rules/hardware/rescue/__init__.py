"""Rescue interfaces: booting a rescue system on an active node."""
