"""Network interfaces: how the ports of a node are connected."""
