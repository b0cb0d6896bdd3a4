"""What is done with ironic-python-agent: booting its ramdisk, inspection by it, and its own deploy steps."""
