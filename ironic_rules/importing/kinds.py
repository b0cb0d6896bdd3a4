"""The kinds of objects that are imported: which of their fields, checked how, and what is stored of them."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from oslo_utils import timeutils

from ironic_rules.api import schema, schemas
from ironic_rules.exceptions import Problem
from ironic_rules.models import states
from ironic_rules.models.documents import JSON, JSONObject
from ironic_rules.models.fields import Fields, Type
from ironic_rules.models.nodes import NODE
from ironic_rules.models.ports import PORT, PORT_GROUP
from ironic_rules.models.resources import ALLOCATION, CHASSIS, RUNBOOK, VOLUME_CONNECTOR, VOLUME_TARGET
from ironic_rules.models.rules import RULE
from ironic_rules.models.steps import DEPLOY_TEMPLATE

#: Fields that a reply derives from something else: nothing is lost without them.
_DERIVED = frozenset({"links", "ports", "states", "portgroups", "volume", "nodes", "conductor", "updated_at"})
#: Values of fields that say nothing.
EMPTY: tuple[JSON, ...] = (None, "", False, {}, [])


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of objects.

    :ivar shape: checks the fields that clients may write
    :ivar written: the others that are imported, as they are shown
    :ivar reasons: for fields that are not imported, why; they are reported where they are not empty
    :ivar derived: further fields without which nothing is lost
    :ivar defaults: values of fields that this version does not have, but behaves so
    :ivar volatile: fields whose values of today may differ from those that were imported
    """

    name: str
    fields: Fields
    shape: schema.Object
    written: frozenset[str] = frozenset()
    reasons: Mapping[str, str] = field(default_factory=dict)
    derived: frozenset[str] = frozenset()
    defaults: Mapping[str, JSON] = field(default_factory=dict)
    volatile: frozenset[str] = frozenset()

    @property
    def imported(self) -> frozenset[str]:
        """All fields that are imported."""
        return frozenset(self.shape.fields) | self.written

    def split(self, document: JSONObject) -> tuple[JSONObject, dict[str, str]]:
        """Return the fields that are imported, and those that would be lost, each with the reason."""
        imported, lost = {}, {}
        for name, value in document.items():
            if name in self.imported:
                imported[name] = value
            elif (value not in EMPTY and name not in _DERIVED and name not in self.derived
                  and value != self.defaults.get(name)):
                lost[name] = self.reasons.get(name, "this version does not have the field")
        return imported, lost

    def load(self, document: JSONObject, problems: list[Problem]) -> JSONObject:
        """Return the imported fields as they are stored, without those that have no value.

        :param problems: gets what prevents that
        """
        values = {name: value for name, value in document.items() if value is not None}
        loaded: JSONObject = self.shape.check(
            {name: value for name, value in values.items() if name in self.shape.fields}, "", problems) or {}
        for name in self.written & values.keys():
            try:
                loaded[name] = _loaded(self.fields, name, values[name])
            except ValueError as exc:
                problems.append(Problem(f"/{name}", str(exc)))
        return {name: value for name, value in loaded.items() if value is not None}


_SHAPES: Mapping[Type, type] = {Type.STRING: str, Type.BOOLEAN: bool, Type.OBJECT: dict, Type.LIST: list}


def _loaded(fields: Fields, name: str, value: JSON) -> JSON | datetime.datetime:
    entry = fields[name]
    if entry.type is Type.TIME:
        if not isinstance(value, str):
            raise ValueError("must be a time")
        moment = timeutils.parse_isotime(value)
        return moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)
    if not isinstance(value, _SHAPES[entry.type]):
        raise ValueError(f"must be of the type {entry.type.value}")
    return value


_CREATED = frozenset({"created_at"})
_STEPS_RUN = "the notes of the other service on work that has ended"
NODE_KIND = Kind(
    "node", NODE, schema.Object({**schemas.NODE_CREATE.fields, **schemas.NODE_FIELDS}, required=NODE.required),
    written=_CREATED | {
        "provision_state", "target_provision_state", "provision_updated_at", "power_state", "last_error", "fault",
        "boot_mode", "secure_boot", "raid_config", "target_raid_config", "inspection_started_at",
        "inspection_finished_at", "auto_discovered"},
    reasons={"driver_internal_info": _STEPS_RUN, "clean_step": _STEPS_RUN, "deploy_step": _STEPS_RUN,
             "service_step": _STEPS_RUN, "console_enabled": "a console of the other service is not started here"},
    derived=frozenset({"traits", "allocation_uuid", "reservation", "target_power_state"}),
    volatile=frozenset({"power_state", "last_error", "provision_updated_at", "inspection_started_at",
                        "inspection_finished_at"}))
PORTGROUP_KIND = Kind("portgroup", PORT_GROUP, schemas.PORTGROUP_CREATE, written=_CREATED | {"internal_info"})
PORT_KIND = Kind("port", PORT, schema.Object(
    {name: shape for name, shape in schemas.PORT_CREATE.fields.items() if name != "node_ident"},
    required=schemas.PORT_CREATE.required), written=_CREATED | {"internal_info"},
    defaults={"available_for_dynamic_portgroup": True})
CONNECTOR_KIND = Kind("volume_connector", VOLUME_CONNECTOR, schemas.CREATE_CONNECTOR, written=_CREATED)
TARGET_KIND = Kind("volume_target", VOLUME_TARGET, schemas.CREATE_TARGET, written=_CREATED)
ALLOCATION_KIND = Kind("allocation", ALLOCATION, schema.Object(
    {name: shape for name, shape in schemas.ALLOCATION_CREATE.fields.items() if name != "node"}),
    written=_CREATED | {"state", "last_error", "node_uuid"})
CHASSIS_KIND = Kind("chassis", CHASSIS, schema.Object(
    schema.of(CHASSIS, CHASSIS.where(lambda entry: entry.create))), written=_CREATED)
TEMPLATE_KIND = Kind("deploy_template", DEPLOY_TEMPLATE, schemas.TEMPLATE_CREATE, written=_CREATED,
                     derived=frozenset({"warnings"}))
RUNBOOK_KIND = Kind("runbook", RUNBOOK, schemas.RUNBOOK_CREATE, written=_CREATED | {"traits"})
RULE_KIND = Kind("inspection_rule", RULE, schema.Object(
    {name: schema.Anything(nullable=True) for name in RULE.where(lambda entry: entry.create)}),
    derived=frozenset({"created_at", "nodes_counted", "valid", "problems", "built_in", "warnings"}))

#: In the order in which they are written: an object comes after those that it refers to.
KINDS = {kind.name: kind for kind in (
    CHASSIS_KIND, TEMPLATE_KIND, RUNBOOK_KIND, RULE_KIND, NODE_KIND, PORTGROUP_KIND, PORT_KIND, CONNECTOR_KIND,
    TARGET_KIND, ALLOCATION_KIND)}
#: Objects that belong to a node, and are written with it.
OF_NODE: Collection[str] = ("portgroup", "port", "volume_connector", "volume_target")
#: The states in which nodes are imported: nothing happens in them until a client requests it.
STABLE = states.ALL - states.TRANSIENT - states.WAITING - states.HOLDING - {states.DELETED, states.REBUILD}
