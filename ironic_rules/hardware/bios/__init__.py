"""BIOS interfaces: the settings of a node's firmware setup."""
