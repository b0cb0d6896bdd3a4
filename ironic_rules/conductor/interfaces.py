"""Interfaces of a node whose driver, conductor group or interfaces were changed by hooks or rules."""

from __future__ import annotations

from ironic_rules.conductor.conductor import Conductor
from ironic_rules.db import conductors
from ironic_rules.hardware import selection
from ironic_rules.models.nodes import CHOOSES_INTERFACES, INTERFACE_FIELDS
from ironic_rules.models.task import Task


def fit(conductor: Conductor, task: Task) -> None:
    """Choose interfaces that the driver of the draft offers: those set by name must be, the others get defaults.

    :raises DriverNotFound: no live conductor of the node's group offers the driver
    :raises InterfaceNotFound: the driver does not offer an interface that a rule has set
    """
    node, changed = task.node, task.node.changes().keys()
    if changed.isdisjoint(CHOOSES_INTERFACES):
        return
    with conductor.db.reader() as conn:
        alive = conductors.alive(conn, conductor.conf.conductor.heartbeat_timeout)
    offered = selection.union(row.hardware_types for row in alive if row.conductor_group == node.conductor_group)
    current = {field: getattr(node, field) for field in INTERFACE_FIELDS}
    for field, name in selection.fit_interfaces(offered, node.driver, current, changed).items():
        if current[field] != name:
            setattr(node, field, name)
