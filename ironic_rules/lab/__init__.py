"""A rack on one machine: the service, its DHCP and web servers, a BMC and virtual machines, in namespaces of their own.

``rack`` has the commands of the page "From a rack to nodes"; the lab runs these.
"""
