"""Events: what has happened, as values. Where they are kept, and who gets them, is not known here.

The names are those of Ironic's notifications: ``baremetal.OBJECT.ACTION.STATUS``. Payloads of Ironic's objects have the
names, versions and fields of Ironic 39 (``ironic.objects``); those of the namespace ``ironic_rules`` are our own.
Secrets are concealed here, so that no event contains one, wherever it is kept.
"""

from __future__ import annotations

import datetime
import fnmatch
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from ironic_rules.models import secrets, states
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.steps import Step

DEBUG, INFO, WARNING, ERROR, CRITICAL = "debug", "info", "warning", "error", "critical"
#: In increasing order of severity.
LEVELS: Final = (DEBUG, INFO, WARNING, ERROR, CRITICAL)
START, END, SUCCESS = "start", "end", "success"
#: The processes of Ironic that notifications name as their publishers.
API, CONDUCTOR = "ironic-api", "ironic-conductor"
OURS, IRONICS = "ironic_rules", "ironic"


@dataclass(frozen=True, slots=True)
class Event:
    """One event.

    :ivar type: ``baremetal.OBJECT.ACTION.STATUS``
    :ivar subject: path of what it is about, below ``/v1``
    :ivar schema: namespace, name and version of the payload: ``ironic/NodePayload/1.17``
    :ivar payload: JSON text of an object, without secrets
    :ivar service: ``ironic-api`` or ``ironic-conductor``
    """

    type: str
    subject: str
    schema: str
    payload: str
    level: str = INFO
    service: str = API


_NODE: Final = (
    *(f"{kind}_interface" for kind in (
        "bios", "boot", "console", "deploy", "inspect", "management", "network", "power", "raid", "rescue", "storage",
        "vendor")),
    "boot_mode", "clean_step", "conductor_group", "console_enabled", "created_at", "deploy_step", "description",
    "disable_power_off", "driver", "extra", "fault", "inspection_finished_at", "inspection_started_at", "instance_uuid",
    "last_error", "lessee", "maintenance", "maintenance_reason", "name", "owner", "power_state", "properties",
    "protected", "protected_reason", "provision_state", "provision_updated_at", "resource_class", "retired",
    "retired_reason", "secure_boot", "target_power_state", "target_provision_state", "traits", "updated_at", "uuid")
_ROW: Final = ("created_at", "extra", "updated_at", "uuid")
#: Name and version of a payload -> its fields.
_PAYLOADS: Final[Mapping[str, tuple[str, ...]]] = {
    "NodePayload/1.17": _NODE,
    "NodeSetPowerStatePayload/1.17": (*_NODE, "to_power"),
    "NodeCorrectedPowerStatePayload/1.17": (*_NODE, "from_power"),
    "NodeSetProvisionStatePayload/1.18": (
        *_NODE, "driver_internal_info", "event", "instance_info", "previous_provision_state",
        "previous_target_provision_state"),
    "NodeCRUDPayload/1.15": (*_NODE, "chassis_uuid", "driver_info", "instance_info"),
    "AllocationCRUDPayload/1.1": (
        *_ROW, "candidate_nodes", "last_error", "name", "node_uuid", "owner", "resource_class", "state", "traits"),
    "ChassisCRUDPayload/1.0": (*_ROW, "description"),
    "DeployTemplateCRUDPayload/1.0": (*_ROW, "name", "steps"),
    "PortCRUDPayload/1.8": (
        *_ROW, "address", "available_for_dynamic_portgroup", "category", "description", "is_smartnic",
        "local_link_connection", "name", "node_uuid", "physical_network", "portgroup_uuid", "pxe_enabled", "vendor"),
    "PortgroupCRUDPayload/1.3": (
        *_ROW, "address", "category", "dynamic_portgroup", "mode", "name", "node_uuid", "physical_network",
        "properties", "standalone_ports_supported"),
    "RunbookCRUDPayload/1.1": (
        *_ROW, "description", "disable_ramdisk", "name", "owner", "public", "steps", "traits"),
    "VolumeConnectorCRUDPayload/1.0": (*_ROW, "connector_id", "node_uuid", "type"),
    "VolumeTargetCRUDPayload/1.0": (*_ROW, "boot_index", "node_uuid", "properties", "volume_id", "volume_type"),
}
#: Kind of a resource -> the object of its events, its path below ``/v1``, and its payload.
RESOURCES: Final[Mapping[str, tuple[str, str, str]]] = {
    "allocation": ("allocation", "allocations", "AllocationCRUDPayload/1.1"),
    "chassis": ("chassis", "chassis", "ChassisCRUDPayload/1.0"),
    "deploy template": ("deploytemplate", "deploy_templates", "DeployTemplateCRUDPayload/1.0"),
    "node": ("node", "nodes", "NodeCRUDPayload/1.15"),
    "port": ("port", "ports", "PortCRUDPayload/1.8"),
    "port group": ("portgroup", "portgroups", "PortgroupCRUDPayload/1.3"),
    "runbook": ("runbook", "runbooks", "RunbookCRUDPayload/1.1"),
    "volume connector": ("volumeconnector", "volume/connectors", "VolumeConnectorCRUDPayload/1.0"),
    "volume target": ("volumetarget", "volume/targets", "VolumeTargetCRUDPayload/1.0"),
}
#: Fields of our resources that Ironic does not have must not be required by Ironic's consumers.
_DEFAULTS: Final[JSONObject] = {"available_for_dynamic_portgroup": True, "dynamic_portgroup": False}
#: Text that Ironic publishes instead of the properties of a volume.
_REDACTED: Final[JSONObject] = {
    "redacted_contents": "** Value redacted: not published on the notification bus. **"}


def of_resource(kind: str, action: str, values: Mapping[str, Any]) -> list[Event]:
    """Return the events of a resource that was created, updated or deleted: as Ironic, ``start`` and ``end``.

    :param kind: a key of ``RESOURCES``;  action: create, update or delete
    :param values: its columns; of a node with ``traits``
    """
    name, path, payload = RESOURCES[kind]
    if kind == "volume target" and values["properties"]:
        values = {**values, "properties": _REDACTED}
    schema, text = _ironics(payload, values)
    return [Event(f"baremetal.{name}.{action}.{status}", f"{path}/{values['uuid']}", schema, text)
            for status in (START, END)]


def of_maintenance(values: Mapping[str, Any]) -> list[Event]:
    """Return the events of a node whose maintenance mode was set or cleared by a request."""
    schema, text = _ironics("NodePayload/1.17", values)
    return [Event(f"baremetal.node.maintenance_set.{status}", _of_node(values), schema, text)
            for status in (START, END)]


def of_power(values: Mapping[str, Any], to_power: str, status: str) -> Event:
    """Return the event of a request for a power state.

    :param status: start, end or error
    """
    level = ERROR if status == ERROR else INFO
    return _event("power_set", status, "NodeSetPowerStatePayload/1.17", {**values, "to_power": to_power}, level)


def of_corrected_power(values: Mapping[str, Any], from_power: str | None) -> Event:
    """Return the event of a node whose power state was not the stored one."""
    return _event("power_state_corrected", SUCCESS, "NodeCorrectedPowerStatePayload/1.17",
                  {**values, "from_power": from_power})


#: The states that can be left without a request.
_UNSTABLE: Final = frozenset(states.WAITING | states.TRANSIENT)


def of_provision(values: Mapping[str, Any], state: str, target: str | None, event: str) -> Event:
    """Return the event of a node whose provision state has changed.

    :param values: after the change;  state, target: before it;  event: that of the state machine
    """
    level = INFO
    if event in ("fail", "error"):
        status, level = ERROR, ERROR
    else:
        passes = state in _UNSTABLE, values["provision_state"] in _UNSTABLE
        status = {(False, True): START, (True, False): END}.get(passes, SUCCESS)
    return _event("provision_set", status, "NodeSetProvisionStatePayload/1.18", {
        **values, "event": event, "previous_provision_state": state, "previous_target_provision_state": target}, level)


def of_inspection(node: Mapping[str, Any], error: str | None, details: JSONObject) -> Event:
    """Return the event of an inspection that has ended.

    :param error: why it failed; None: it did not
    """
    status = END if error is None else ERROR
    return Event(f"baremetal.node.inspect.{status}", _of_node(node), *_ours("InspectionPayload/1.0", {
        "node_uuid": node["uuid"], "node_name": node["name"], "error": error, **details}),
        INFO if error is None else ERROR, CONDUCTOR)


def of_facts(node: Mapping[str, Any], changes: list[JSONObject], inspection: str | None) -> Event:
    """Return the event of an inspection that has changed facts of a node.

    :param changes: ``fact``, ``before`` and ``after`` of each
    """
    return Event("baremetal.node.facts_change.success", _of_node(node), *_ours("FactChangesPayload/1.0", {
        "node_uuid": node["uuid"], "node_name": node["name"], "inspection_uuid": inspection, "changes": changes}),
        service=CONDUCTOR)


def of_rule_set(revision: int, user: str | None, summary: str) -> Event:
    """Return the event of a change of the set of inspection rules."""
    return Event("baremetal.inspectionrules.update.success", "inspection_rules", *_ours("RuleSetPayload/1.0", {
        "revision": revision, "user": user, "summary": summary}))


def of_refused_report(payload: JSONObject) -> Event:
    """Return the event of a report that was refused, or of several equal ones."""
    return Event("baremetal.report.refuse.error", "inspection_journal", *_ours("RefusedReportPayload/1.0", payload),
                 WARNING)


def of_audit(record: JSONObject) -> Event:
    """Return the event of a record of the audit log."""
    is_done = record["outcome"] == "success"
    return Event(f"baremetal.audit.request.{END if is_done else 'error'}", "audit", *_ours("AuditPayload/1.0", record),
                 INFO if is_done else WARNING)


def _event(action: str, status: str, payload: str, values: Mapping[str, Any], level: str = INFO) -> Event:
    schema, text = _ironics(payload, values)
    return Event(f"baremetal.node.{action}.{status}", _of_node(values), schema, text, level, CONDUCTOR)


def _of_node(values: Mapping[str, Any]) -> str:
    return f"nodes/{values['uuid']}"


def _ironics(payload: str, values: Mapping[str, Any]) -> tuple[str, str]:
    """Return schema and text of a payload of Ironic; fields that ``values`` lacks are those of other releases."""
    fields = {name: values.get(name, _DEFAULTS.get(name)) for name in _PAYLOADS[payload]}
    return f"{IRONICS}/{payload}", _text(fields)


def _ours(payload: str, values: JSONObject) -> tuple[str, str]:
    return f"{OURS}/{payload}", _text(values)


def _text(values: JSONObject) -> str:
    text = orjson.dumps(values, default=plain, option=_OPTIONS)
    if secrets.json_is_free(text):
        return text.decode()
    return orjson.dumps(secrets.mask(orjson.loads(text))).decode()


#: Times as in Ironic, ``2026-01-31T12:00:00Z``.
_OPTIONS: Final = orjson.OPT_OMIT_MICROSECONDS | orjson.OPT_UTC_Z


def plain(value: object) -> object:
    """Return what orjson does not encode itself as something that it does."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Step):
        return value.to_wire()
    raise TypeError(type(value).__name__)


def primitive(schema: str, payload: str) -> JSONObject:
    """Return a payload as oslo.versionedobjects sends it."""
    namespace, name, version = schema.split("/")
    return {"ironic_object.namespace": namespace, "ironic_object.name": name, "ironic_object.version": version,
            "ironic_object.data": orjson.loads(payload)}


def is_at_least(level: str, least: str | None) -> bool:
    """Return whether a level is one that is wanted; None: none is."""
    return least is not None and LEVELS.index(level) >= LEVELS.index(least)


def matches(type_: str, patterns: Collection[str]) -> bool:
    """Return whether the type of an event matches one of the patterns, in which ``*`` stands for any text."""
    return any(fnmatch.fnmatchcase(type_, pattern) for pattern in patterns)


def moment(value: datetime.datetime) -> str:
    """Return a time as texts of events have it."""
    return orjson.dumps(value, option=orjson.OPT_UTC_Z).decode().strip('"')
