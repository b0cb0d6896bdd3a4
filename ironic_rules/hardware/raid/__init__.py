"""RAID interfaces: logical disks of a node's controllers."""
