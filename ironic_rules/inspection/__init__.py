"""Inspection: which node a ramdisk's data belong to, and what hooks and rules make of them."""
