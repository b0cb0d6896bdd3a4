"""What the Redfish interfaces share: a node's settings, connections to BMCs, and what a BMC knows of its machine."""
