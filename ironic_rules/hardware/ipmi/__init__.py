"""Machines whose BMC supports IPMI: the hardware type, its interfaces, and the command ``ipmitool``."""
