"""LLDP, the protocol by which switches identify themselves to neighbours: from octets to values. No side effects.

The sender of the report controls every octet of it, so nothing here raises, works without a limit, or returns control
characters. Sources: IEEE 802.1AB (frame, basic set), 802.1Q annex D, 802.3 clause 79, ANSI/TIA-1057 (LLDP-MED).
"""

from ironic_rules.inspection.lldp.decode import MAX_INTERFACES, Neighbour, decode, received

__all__ = ["MAX_INTERFACES", "Neighbour", "decode", "received"]
