"""Power interfaces: switching a node on and off."""
