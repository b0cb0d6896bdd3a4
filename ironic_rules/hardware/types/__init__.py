"""Hardware types: which interfaces go together. A type has the entry point name that nodes have as ``driver``."""
