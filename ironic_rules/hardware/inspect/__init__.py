"""Inspect interfaces: how the properties of a node are found out."""
