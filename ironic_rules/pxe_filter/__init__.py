"""``ironic-pxe-filter``: controls which MAC addresses a local DHCP server allows to boot the inspection image.

``reader`` reads the database, ``plan`` decides without side effects, ``writer`` collects what has changed, and
``targets`` tell the servers. ``sync`` keeps areas, each a plan and its targets, in accordance with the database.
"""
