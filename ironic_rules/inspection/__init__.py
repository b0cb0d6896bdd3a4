"""Inspection: the lookup of the node that a ramdisk's data belong to, and their processing by hooks and rules."""
