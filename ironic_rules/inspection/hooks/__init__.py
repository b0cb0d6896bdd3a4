"""Inspection hooks: one task and one file each. ``base`` defines what they may change; no other side effects."""
