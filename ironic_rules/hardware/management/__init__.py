"""Management interfaces: boot devices and what else a BMC can do besides power."""
