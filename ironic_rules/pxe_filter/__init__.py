"""``ironic-pxe-filter``: controls which MAC addresses a local DHCP server allows to boot the inspection image.

``reader`` reads the database, ``plan`` decides without side effects, ``writer`` collects what has changed, and
``targets`` tell the servers. An ``area`` has a plan and its targets, and the ``keeper`` all areas.
"""
