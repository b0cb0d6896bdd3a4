"""Inspection, rules and deploy templates for bare-metal clouds."""
