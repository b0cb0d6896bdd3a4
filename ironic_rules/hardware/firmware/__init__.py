"""Firmware interfaces: versions of a node's firmware components."""
