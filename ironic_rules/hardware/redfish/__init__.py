"""Machines whose BMC speaks Redfish: the hardware type, its interfaces, and what they share."""
