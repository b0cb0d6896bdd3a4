"""Resources beside nodes, ports and rules: the fields of each.

====================  =====================================================================================
allocations           requests for any node that fits, which keep the node that they have got
chassis               groups of nodes that stand in one enclosure
conductors            their names, hardware types, and the time of their last heartbeat
operations            work on many nodes that one request has begun
runbooks              steps in a fixed order, with which an operator lets others clean or service nodes
volumes               connectors of a node to volumes, and the volumes of its instance
====================  =====================================================================================
"""

from __future__ import annotations

import datetime
from collections.abc import Collection, Mapping
from typing import Protocol, TypeAlias

from ironic_rules.models.documents import JSONObject
from ironic_rules.models.fields import Fields, Filter, Text, field, form, record
from ironic_rules.text import enumeration

ALLOCATING = "allocating"
ACTIVE = "active"
ERROR = "error"
STATES = (ALLOCATING, ACTIVE, ERROR)
#: Candidate nodes and traits that one allocation may name.
MAX_CANDIDATES = 1000
MAX_TRAITS = 50


@form
class Allocation(Protocol):
    """A node for an instance with the UUID of the allocation. ``traits`` and ``candidate_nodes`` restrict which one."""

    id: int = field(shown=False)
    node_id: int | None = field(shown=False)

    uuid: str = field(create=True, text=Text.UUID)
    created_at: datetime.datetime = field()
    updated_at: datetime.datetime | None = field()
    name: str | None = field(patch=True, text=Text.NAME)
    state: str = field(filter=52, choices=STATES)
    last_error: str | None = field()
    resource_class: str | None = field(create=True, filter=52, max_length=80, min_length=1)
    traits: list[str] = field(create=True)
    candidate_nodes: list[str] = field(create=True)
    extra: JSONObject = field(patch=True)
    owner: str | None = field(since=60, create=True, filter=60)
    node_uuid: str | None = field(column=False, text=Text.UUID)


ALLOCATION = Fields.of(Allocation, computed={"links": 1}, inputs={"node": 58}, filters=(Filter("node"),))


@form
class Chassis(Protocol):
    """An enclosure that nodes name by ``chassis_uuid``."""

    id: int = field(shown=False)

    uuid: str = field(create=True, text=Text.UUID, summary=True)
    created_at: datetime.datetime = field()
    updated_at: datetime.datetime | None = field()
    description: str | None = field(patch=True, text=Text.LINES, summary=True)
    extra: JSONObject = field(patch=True)


CHASSIS = Fields.of(Chassis, computed={"links": 1, "nodes": 1})


#: ``{hardware type: {interface kind: {"enabled": [names], "default": name}, …}}``, as conductors register it.
HardwareTypes: TypeAlias = dict[str, JSONObject]


def different_pins(pins: Mapping[str, str]) -> str:
    """Return a text about conductors, by host name, that are pinned to different releases; empty if none are.

    Some of them then apply deploy templates, and others do not.

    :param pins: releases by host name; empty for conductors that are not pinned
    """
    hosts: dict[str, list[str]] = {}
    for host, pin in sorted(pins.items()):
        hosts.setdefault(pin or "not set", []).append(host)
    if len(hosts) < 2:
        return ""
    shown = "; ".join(f"{pin}: {enumeration(those)}" for pin, those in sorted(hosts.items()))
    return (f"[conductor]pin_release_version differs between conductors ({shown}): only those without one apply deploy "
            "templates. Set it to the same value for all.")


class RegisteredConductor(Protocol):
    """A row of the table of conductors; ``updated_at`` is the time of the last heartbeat.

    ``pinned_release`` is its ``[conductor]pin_release_version``, empty if that is not set; None: an earlier release,
    which does not register it.
    """

    id: int
    hostname: str
    conductor_group: str
    instance: str
    hardware_types: HardwareTypes
    online: bool
    pinned_release: str | None
    created_at: datetime.datetime
    updated_at: datetime.datetime | None


#: The kind of operations that run hooks and rules over stored data again.
REAPPLY = "reapply"
#: The kind of operations that find facts in stored inventories.
FIND_FACTS = "find_facts"


@record
class Operation:
    """A stored operation. ``kind`` says what is done, ``filters`` to what; ``user`` is who has requested it."""

    id: int = field(shown=False)

    uuid: str = field(summary=True)
    kind: str = field(summary=True)
    status: str = field(summary=True)
    filters: JSONObject = field()
    user: str | None = field(default=None)
    created_at: datetime.datetime = field(summary=True)
    updated_at: datetime.datetime | None = field(default=None)


#: ``progress`` counts nodes: total, done, changed, failed, left.
OPERATION = Fields.of(Operation, computed={"progress": 1, "errors": 1, "links": 1})


MAX_RUNBOOK_STEPS = 256
#: Names of the fields of a step: ``order`` says when it runs, the lowest first.
RUNBOOK_STEP_FIELDS = ("interface", "step", "args", "order")


@form
class Runbook(Protocol):
    """A stored runbook. Its name is a trait: it may be used on nodes with that trait, or with one of ``traits``."""

    id: int = field(shown=False)

    uuid: str = field(create=True, text=Text.UUID, summary=True)
    created_at: datetime.datetime = field()
    updated_at: datetime.datetime | None = field()
    name: str = field(patch=True, required=True, summary=True)
    steps: list[JSONObject] = field(patch=True, required=True, secret=True)
    disable_ramdisk: bool = field(patch=True)
    extra: JSONObject = field(patch=True)
    public: bool = field(patch=True)
    owner: str | None = field(patch=True)
    traits: list[str] = field()


RUNBOOK = Fields.of(Runbook, computed={"links": 1})


def runbook_fits(runbook: Runbook, traits: Collection[str]) -> bool:
    """Return whether a runbook may be used on a node with these traits."""
    return runbook.name in traits or not set(runbook.traits).isdisjoint(traits)


def steps_to_run(runbook: Runbook) -> list[JSONObject]:
    """Return the steps as a request for cleaning or servicing has them, in the order in which they run."""
    ordered = sorted(runbook.steps, key=lambda step: int(step["order"]))
    return [{name: step[name] for name in RUNBOOK_STEP_FIELDS if name != "order"} for step in ordered]


@form
class VolumeConnector(Protocol):
    """An address of a node in a storage network, e.g. an iSCSI qualified name (``iqn``) or a WWPN."""

    id: int = field(shown=False)
    node_id: int = field(shown=False)

    uuid: str = field(create=True, text=Text.UUID, summary=True)
    created_at: datetime.datetime = field()
    updated_at: datetime.datetime | None = field()
    type: str = field(patch=True, required=True, summary=True, min_length=1, max_length=32)
    connector_id: str = field(patch=True, required=True, summary=True, min_length=1)
    extra: JSONObject = field(patch=True)
    node_uuid: str = field(column=False, patch=True, required=True, text=Text.UUID, summary=True)


@form
class VolumeTarget(Protocol):
    """A volume of a node's instance; ``boot_index`` 0 is the one that it boots from."""

    id: int = field(shown=False)
    node_id: int = field(shown=False)

    uuid: str = field(create=True, text=Text.UUID, summary=True)
    created_at: datetime.datetime = field()
    updated_at: datetime.datetime | None = field()
    volume_type: str = field(patch=True, required=True, summary=True, min_length=1, max_length=64)
    properties: JSONObject = field(patch=True, secret=True)
    boot_index: int = field(patch=True, required=True, summary=True)
    volume_id: str = field(patch=True, required=True, summary=True, min_length=1)
    extra: JSONObject = field(patch=True)
    node_uuid: str = field(column=False, patch=True, required=True, text=Text.UUID, summary=True)


_OF_NODE = (Filter("node"),)
VOLUME_CONNECTOR = Fields.of(VolumeConnector, computed={"links": 1}, filters=_OF_NODE)
VOLUME_TARGET = Fields.of(VolumeTarget, computed={"links": 1}, filters=_OF_NODE)
