"""Inspection hooks: one job and one file each. Pure; what they may change is said in ``base``."""
