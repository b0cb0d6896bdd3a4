"""Machines whose BMC supports Redfish: the hardware type, its interfaces, and what they share."""
