"""Which minor version brought which field, filter and state of nodes, ports and port groups.

Source: the API's version history (https://docs.openstack.org/ironic, "REST API Version History"). What a version does
not know is left out of its replies, and naming it (body, patch, ``fields``, filter, sort key) is 406.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ironic_rules.api import versions
from ironic_rules.models import states
from ironic_rules.models.node_fields import INTERFACE_FIELDS


class Since:
    """Names with the first minor version that knows them; names that are not listed exist since 1.1."""

    def __init__(self, first: Mapping[str, int]) -> None:
        self._first = dict(first)
        self._hidden = {minor: frozenset(name for name, since in self._first.items() if minor < since)
                        for minor in range(max(self._first.values()) + 1)}

    def hidden(self, minor: int) -> frozenset[str]:
        """Return the names that ``minor`` does not know yet."""
        return self._hidden.get(minor, frozenset())

    def refuse(self, named: Iterable[str], minor: int) -> None:
        """Check that version ``minor`` knows everything that a request names.

        :raises NotAcceptable: 406, with the version that is needed
        """
        too_new = sorted(self.hidden(minor).intersection(named))
        if too_new:
            needed = max(self._first[name] for name in too_new)
            raise versions.too_new(", ".join(too_new), needed)


#: Every interface has its field since 1.31, but for these.
_INTERFACE_SINCE = {"network_interface": 20, "storage_interface": 33, "rescue_interface": 38, "bios_interface": 40,
                    "firmware_interface": 86}

NODE_FIELDS = Since({
    "driver_internal_info": 3, "name": 5, "inspection_finished_at": 6, "inspection_started_at": 6, "clean_step": 7,
    "raid_config": 12, "target_raid_config": 12, "states": 14, "resource_class": 21, "portgroups": 24, "volume": 32,
    "traits": 37, "fault": 42, "deploy_step": 44, "conductor_group": 46, "automated_clean": 47, "protected": 48,
    "protected_reason": 48, "conductor": 49, "owner": 50, "description": 51, "allocation_uuid": 52, "retired": 61,
    "retired_reason": 61, "lessee": 65, "network_data": 66, "boot_mode": 75, "secure_boot": 75, "shard": 82,
    "parent_node": 83, "service_step": 87, "disable_power_off": 95,
    **{field: _INTERFACE_SINCE.get(field, 31) for field in INTERFACE_FIELDS},
})
NODE_FILTERS = Since({
    "provision_state": 9, "driver": 16, "resource_class": 21, "fault": 42, "conductor_group": 46, "conductor": 49,
    "owner": 50, "description_contains": 51, "retired": 61, "lessee": 65, "project": 65, "shard": 82, "sharded": 82,
    "parent_node": 83, "include_children": 83,
})
PORT_FIELDS = Since({
    "internal_info": 18, "local_link_connection": 19, "pxe_enabled": 19, "portgroup_uuid": 24, "physical_network": 34,
    "is_smartnic": 53, "name": 88, "node_ident": 94,
})
PORT_FILTERS = Since({"portgroup": 24, "shard": 82})
PORTGROUP_FIELDS = Since({"ports": 24, "mode": 26, "properties": 26})

def visible_state(state: str | None, minor: int) -> str | None:
    """Return how a provision state reads in version ``minor``: states that it does not know go by older names."""
    if state == states.INSPECTWAIT and minor < versions.INSPECT_WAIT:
        return states.INSPECTING
    if state == states.AVAILABLE and minor < 2:
        return None
    return state


def initial_state(minor: int) -> str:
    """Return the provision state of a node that is created with version ``minor``."""
    return states.ENROLL if minor >= versions.ENROLL else states.AVAILABLE
