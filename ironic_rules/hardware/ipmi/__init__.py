"""What the IPMI interfaces share: a node's settings, and the command ``ipmitool``."""
