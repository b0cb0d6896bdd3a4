"""Storage interfaces: remote volumes of a node."""
