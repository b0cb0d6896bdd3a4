"""The ramdisk with ironic-python-agent: its recipe, building it from Debian, and ISO images that boot it."""
