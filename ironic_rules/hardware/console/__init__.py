"""Console interfaces: the serial or graphical console of a node."""
