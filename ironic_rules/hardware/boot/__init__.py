"""Boot interfaces: what a node boots, and from where."""
