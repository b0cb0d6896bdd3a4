"""Interfaces that use ironic-python-agent: booting its ramdisk, in-band inspection, and its own deploy steps."""
