"""Machines whose BMC speaks IPMI: the hardware type, its interfaces, and the command ``ipmitool``."""
