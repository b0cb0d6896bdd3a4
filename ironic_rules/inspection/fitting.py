"""Interfaces of a node whose driver, conductor group or interfaces were changed by hooks or rules."""

from __future__ import annotations

from ironic_rules.db import conductors
from ironic_rules.db.session import Database
from ironic_rules.exceptions import DriverNotFound, InterfaceNotFound
from ironic_rules.hardware import selection
from ironic_rules.inspection import records
from ironic_rules.models.draft import NodeDraft
from ironic_rules.models.nodes import CHOOSES_INTERFACES, INTERFACE_FIELDS
from ironic_rules.models.task import Task


def fit(db: Database, heartbeat_timeout: int, task: Task, *, sealed: bool) -> None:
    """Choose interfaces that the driver of the draft offers: those set by name must be, the others get defaults.

    :param heartbeat_timeout: seconds after which a conductor is not alive
    :param sealed: the draft contains what a sensitive rule wrote
    :raises RuleFailed: a rule has set a driver that no live conductor of the node's group offers, a group without that
        driver, or an interface that the driver does not offer
    :raises DriverNotFound, InterfaceNotFound: a hook has done so
    """
    node, changed = task.node, task.node.changes().keys()
    if changed.isdisjoint(CHOOSES_INTERFACES):
        return
    with db.reader() as conn:
        alive = conductors.alive(conn, heartbeat_timeout)
    offered = selection.union(row.hardware_types for row in alive if row.conductor_group == node.conductor_group)
    current = {field: getattr(node, field) for field in INTERFACE_FIELDS}
    try:
        chosen = selection.fit_interfaces(offered, node.driver, current, changed)
    except (DriverNotFound, InterfaceNotFound) as exc:
        raise _attributed(exc, node, has_conductors=bool(offered), sealed=sealed) from None
    for field, name in chosen.items():
        if current[field] != name:
            setattr(node, field, name)


def _attributed(error: DriverNotFound | InterfaceNotFound, node: NodeDraft, *, has_conductors: bool,
          sealed: bool) -> Exception:
    """Return the failure of the rule that has caused an error, or the error."""
    error = _of_group(error, node.conductor_group)
    fields = _likely_fields(error, has_conductors=has_conductors)
    return records.rule_failure(error, [(node, field, str(error)) for field in fields], sealed=sealed) or error


def _of_group(error: DriverNotFound | InterfaceNotFound, group: str) -> DriverNotFound | InterfaceNotFound:
    if isinstance(error, InterfaceNotFound) or not group:
        return error
    driver = error.facts["driver"]
    return DriverNotFound(f"No conductor of the group {group} supports the hardware type {driver}.", driver=driver)


def _likely_fields(error: DriverNotFound | InterfaceNotFound, *, has_conductors: bool) -> tuple[str, ...]:
    """Return the fields because of which an error was raised, the most likely first."""
    if isinstance(error, InterfaceNotFound):
        return f"{error.facts['kind']}_interface", "driver"
    return ("driver", "conductor_group") if has_conductors else ("conductor_group", "driver")
