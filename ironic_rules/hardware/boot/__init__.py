"""Boot interfaces: how a node boots a ramdisk."""
