"""LLDP, the protocol by which a switch tells its neighbours who it is: from octets to readable values. Pure.

Whoever sends the report has chosen every octet of it, so nothing here raises, works without a bound, or lets a control
character through. Sources: IEEE 802.1AB (frame, basic set), 802.1Q annex D, 802.3 clause 79, ANSI/TIA-1057 (LLDP-MED).
"""

from ironic_rules.inspection.lldp.decode import Neighbour, decode
from ironic_rules.inspection.lldp.received import MAX_INTERFACES, received

__all__ = ["MAX_INTERFACES", "Neighbour", "decode", "received"]
