"""Bodies of requests on nodes."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from oslo_utils import uuidutils

from ironic_rules.api import schema
from ironic_rules.exceptions import InvalidParameterValue, Problem
from ironic_rules.models import node_fields, states, traits

_HOST_NAME = re.compile(r"(?!-)[a-z0-9-]{1,63}(?<!-)(?:\.(?!-)[a-z0-9-]{1,63}(?<!-))*", re.IGNORECASE)
#: Words that are routes at the place of a name. Ironic refuses more for nodes, and clients may know all of both.
RESERVED_NAMES = frozenset({"detail"})
RESERVED_NODE_NAMES = RESERVED_NAMES | {"maintenance", "management", "states", "validate", "vendor_passthru"}


class LogicalName(schema.Text):
    """A name that can stand in a URL in place of a UUID: RFC 3986's unreserved characters, and no UUID itself."""

    def __init__(self, reserved: Collection[str] = RESERVED_NAMES) -> None:
        super().__init__(255, min_length=1, pattern=r"[A-Za-z0-9\-._~]+", nullable=True, expected=(
            "is an invalid name: letters, digits, '-', '.', '_' and '~' are allowed"))
        self.reserved = reserved

    def convert(self, value: Any, where: str, problems: schema.Problems) -> Any:
        name = super().convert(value, where, problems)
        if uuidutils.is_uuid_like(name):
            raise ValueError("is an invalid name: a name must not look like a UUID")
        if name in self.reserved:
            raise ValueError(f"is an invalid name: reserved words are {', '.join(sorted(self.reserved))}")
        return name


def check_host_name(name: str | None) -> None:
    """Check a name that is given with an API version below 1.10, which knows host names only.

    :raises InvalidParameterValue: 400
    """
    if name and not _HOST_NAME.fullmatch(name):
        raise InvalidParameterValue(problems=[Problem("/name", "is an invalid name: not a host name (API below 1.10)")])


def _field(name: str) -> schema.Schema:
    nullable = name != "driver"
    match node_fields.TYPES[name]:
        case node_fields.OBJECT:
            return schema.Map(nullable=nullable)
        case node_fields.BOOLEAN:
            return schema.Boolean(nullable=nullable)
    multiline = name == "description" or name.endswith("_reason")
    return schema.Text(node_fields.MAX_LENGTHS.get(name, 255), min_length=int(name == "driver"), multiline=multiline,
                       nullable=nullable)


#: Every field that somebody may write. ``null`` stands for the field's default.
FIELDS: dict[str, schema.Schema] = {
    **{name: _field(name) for name in node_fields.TYPES},
    "name": LogicalName(RESERVED_NODE_NAMES),
    "instance_uuid": schema.Uuid(nullable=True),
    "conductor_group": schema.Text(255, pattern=r"[A-Za-z0-9_\-.]*", nullable=True, expected=(
        "letters, digits, '-', '_' and '.' are allowed")),
}
DEFAULTS: dict[str, Any] = {
    name: {node_fields.OBJECT: {}, node_fields.BOOLEAN: False, node_fields.STRING: ""}[kind]
    for name, kind in node_fields.TYPES.items() if name in node_fields.NOT_NULLABLE and name != "driver"
}

CREATE = schema.Object(
    {**{name: shape for name, shape in FIELDS.items() if not name.startswith("protected")},
     "uuid": schema.Uuid(nullable=True)},
    required=("driver",))

_STEP = {
    "interface": schema.Enum(*node_fields.INTERFACES),
    "step": schema.Text(255, min_length=1),
    "args": schema.Map(nullable=True),
}
_STEPS = schema.List(schema.Object(_STEP, required=("interface", "step")), max_items=1000, nullable=True)
_DEPLOY_STEPS = schema.List(schema.Object(
    {**_STEP, "priority": schema.Integer(0, 2**31 - 1)}, required=("interface", "step", "args", "priority")),
    max_items=1000, nullable=True)


class ConfigDrive(schema.Schema):
    """A config drive: text (base64 of a gzipped image, or a URL), or the object that one is made from."""

    def convert(self, value: Any, where: str, problems: schema.Problems) -> Any:
        if not isinstance(value, (str, dict)):
            raise ValueError("must be a string or an object")
        return value


class ProvisionTarget(schema.Schema):
    """A verb of ``states/provision``."""

    def convert(self, value: Any, where: str, problems: schema.Problems) -> Any:
        if not isinstance(value, str) or value not in states.VERB_VERSIONS:
            raise ValueError(f"must be one of {', '.join(sorted(states.VERB_VERSIONS))}")
        return value


PROVISION = schema.Object({
    "target": ProvisionTarget(), "configdrive": ConfigDrive(nullable=True), "clean_steps": _STEPS,
    "service_steps": _STEPS, "deploy_steps": _DEPLOY_STEPS,
    "rescue_password": schema.Text(255, min_length=1, nullable=True), "disable_ramdisk": schema.Boolean(nullable=True),
}, required=("target",))
POWER = schema.Object({
    "target": schema.Enum(*sorted(states.POWER_TARGETS)), "timeout": schema.Integer(1, 2**31 - 1, nullable=True),
}, required=("target",))
MAINTENANCE = schema.Object({"reason": schema.Text(4096, multiline=True, nullable=True)}, nullable=True)


class Trait(schema.Schema):
    """The name of a standard or custom trait."""

    def convert(self, value: Any, where: str, problems: schema.Problems) -> Any:
        if not traits.is_trait(value):
            raise ValueError("must be a standard trait (os-traits), or CUSTOM_ followed by A-Z, 0-9 and _ "
                             f"(at most {traits.MAX_LENGTH} characters)")
        return value


TRAITS = schema.Object({"traits": schema.List(Trait())}, required=("traits",))
VIF = schema.Object({
    "id": schema.Text(255, min_length=1), "port_uuid": schema.Uuid(nullable=True),
    "portgroup_uuid": schema.Uuid(nullable=True),
}, required=("id",), extra=True)
