"""Bodies of requests on nodes."""

from __future__ import annotations

import re
from typing import Any

from ironic_rules.api import schema
from ironic_rules.exceptions import InvalidParameterValue, Problem
from ironic_rules.models import states, traits
from ironic_rules.models.documents import JSON
from ironic_rules.models.nodes import NODE
from ironic_rules.models.steps import STEP_INTERFACES

_HOST_NAME = re.compile(r"(?!-)[a-z0-9-]{1,63}(?<!-)(?:\.(?!-)[a-z0-9-]{1,63}(?<!-))*", re.IGNORECASE)
#: Words that are routes below nodes, here or in Ironic: clients may use all of them.
_RESERVED_NAMES = schema.RESERVED_NAMES | {
    "maintenance", "management", "reapply", "states", "validate", "vendor_passthru"}


def check_host_name(name: str | None) -> None:
    """Check a name that is given with an API version below 1.10, which allows host names only.

    :raises InvalidParameterValue: 400
    """
    if name and not _HOST_NAME.fullmatch(name):
        raise InvalidParameterValue(problems=[Problem("/name", "is an invalid name: not a host name (API below 1.10)")])


_SPECIAL = {"name": schema.Name(_RESERVED_NAMES)}
#: Every field that a PATCH may write. ``null`` means the field's default.
FIELDS = schema.of(NODE, NODE.patchable, _SPECIAL)
#: Of requests to run hooks and rules again.
REAPPLY = schema.Object({"dry_run": schema.Boolean(), "allow_deployed": schema.Boolean()}, nullable=True)
CREATE = schema.Object(
    schema.of(NODE, NODE.where(lambda entry: entry.create), _SPECIAL), required=NODE.required)
#: As ``CREATE``, for a node that waits for the report of its ramdisk.
ENROLL = schema.Object(
    {name: item for name, item in CREATE.fields.items() if name not in ("inspect_interface", "instance_uuid")},
    required=CREATE.required)

_STEP = {
    "interface": schema.Enum(*STEP_INTERFACES),
    "step": schema.Text(255, min_length=1),
    "args": schema.Map(nullable=True),
}
_STEPS = schema.List(schema.Object(_STEP, required=("interface", "step")), max_items=1000, nullable=True)
_DEPLOY_STEPS = schema.List(schema.Object(
    {**_STEP, "priority": schema.Integer(0, 2**31 - 1)}, required=("interface", "step", "args", "priority")),
    max_items=1000, nullable=True)


class ConfigDrive(schema.Schema):
    """A config drive: a string (base64 of a gzipped image, or a URL), or an object from which one is built."""

    def convert(self, value: JSON, where: str, problems: schema.Problems) -> Any:
        if not isinstance(value, (str, dict)):
            raise ValueError("must be a string or an object")
        return value


class ProvisionTarget(schema.Schema):
    """A verb of ``states/provision``."""

    def convert(self, value: JSON, where: str, problems: schema.Problems) -> str:
        if not isinstance(value, str) or value not in states.VERB_VERSIONS:
            raise ValueError(f"must be one of {', '.join(sorted(states.VERB_VERSIONS))}")
        return value


PROVISION = schema.Object({
    "target": ProvisionTarget(), "configdrive": ConfigDrive(nullable=True), "clean_steps": _STEPS,
    "service_steps": _STEPS, "deploy_steps": _DEPLOY_STEPS,
    "rescue_password": schema.Text(255, min_length=1, nullable=True), "disable_ramdisk": schema.Boolean(nullable=True),
    "runbook": schema.Text(255, min_length=1, nullable=True),
}, required=("target",))
POWER = schema.Object({
    "target": schema.Enum(*sorted(states.POWER_TARGETS)), "timeout": schema.Integer(1, 2**31 - 1, nullable=True),
}, required=("target",))
MAINTENANCE = schema.Object({"reason": schema.Text(4096, multiline=True, nullable=True)}, nullable=True)


class Trait(schema.Schema):
    """The name of a standard or custom trait."""

    def convert(self, value: JSON, where: str, problems: schema.Problems) -> Any:
        if not traits.is_trait(value):
            raise ValueError("must be a standard trait (os-traits), or CUSTOM_ followed by A-Z, 0-9 and _ "
                             f"(at most {traits.MAX_LENGTH} characters)")
        return value


TRAITS = schema.Object({"traits": schema.List(Trait())}, required=("traits",))
VIF = schema.Object({
    # It is in the URL by which it is detached. As in Ironic: a UUID, or a name.
    "id": schema.Text(255, min_length=1, pattern=schema.UNRESERVED, expected=(
        "must be a UUID or a name: letters, digits, '-', '.', '_' and '~' are allowed")),
    "port_uuid": schema.Uuid(nullable=True), "portgroup_uuid": schema.Uuid(nullable=True),
}, required=("id",), extra=True)
