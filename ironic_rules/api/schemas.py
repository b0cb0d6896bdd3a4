"""The schemas of all request bodies, by resource; they are built at import.

Bodies with rules, of either kind, are objects here: the rule engine checks the rules and reports every problem at once.
"""

from __future__ import annotations

import math
import re
from typing import Any

from ironic_rules.api import schema, versions
from ironic_rules.api.schema import Boolean, Integer, Map, Object, Problems, Schema, Text
from ironic_rules.exceptions import InvalidParameterValue, Problem
from ironic_rules.hardware.base import DEVICE_TYPES
from ironic_rules.models import events, states, traits, urls, webhooks
from ironic_rules.models.documents import JSON, JSONObject
from ironic_rules.models.fields import Fields
from ironic_rules.models.flavors import FIELDS, MAX_AMOUNT, MAX_DESCRIPTION, MAX_LENGTH
from ironic_rules.models.node_actions import ACTIONS
from ironic_rules.models.nodes import MAX_CLAUSE, NODE
from ironic_rules.models.ports import PORT, PORT_GROUP
from ironic_rules.models.resources import (
    ALLOCATION,
    CHASSIS,
    MAX_CANDIDATES,
    MAX_RUNBOOK_STEPS,
    MAX_TRAITS,
    RUNBOOK,
    VOLUME_CONNECTOR,
    VOLUME_TARGET,
)
from ironic_rules.models.resources import REAPPLY as REAPPLY_ACTION
from ironic_rules.models.rules import RULE
from ironic_rules.models.steps import (
    DEPLOY_TEMPLATE,
    MAX_PRIORITY,
    MAX_STEP_NAME,
    MAX_TEMPLATE_STEPS,
    STEP_FIELDS,
    STEP_INTERFACES,
)
from ironic_rules.rules import rule_fields, rule_schema

#: Every field that a PATCH may write. ``null`` means the field's default.
CHASSIS_FIELDS = schema.of(CHASSIS, CHASSIS.patchable)
CHASSIS_CREATE = schema.Object(schema.of(CHASSIS, CHASSIS.where(lambda entry: entry.create)))
CHASSIS_PATCHED = schema.Object(CHASSIS_FIELDS)


#: The greatest number that a REAL of every database can hold.
_MAX_FACTOR = 3.4e38


class FlavorId(Text):
    """The id of a flavor in URLs; an integer is its digits."""

    def __init__(self) -> None:
        super().__init__(MAX_LENGTH, pattern=r"(?! )[a-zA-Z0-9. _-]+(?<! )", nullable=True, expected=(
            "letters, digits, '-', '_', '.' and, between them, blanks are allowed"))

    def convert(self, value: JSON, where: str, problems: Problems) -> str:
        if type(value) is int and 0 <= value <= MAX_AMOUNT:
            value = str(value)
        ident = super().convert(value, where, problems)
        if ident in schema.RESERVED_NAMES or not ident.strip(". "):
            raise ValueError("is reserved")
        return ident

    def non_null(self) -> JSONObject:
        return {"anyOf": [super().non_null(), {"type": "integer", "minimum": 0, "maximum": MAX_AMOUNT}]}


class FlavorName(Text):
    """The name of a flavor, as a user sees it."""

    def __init__(self) -> None:
        super().__init__(MAX_LENGTH, min_length=1)

    def convert(self, value: JSON, where: str, problems: Problems) -> str:
        name = super().convert(value, where, problems)
        if "/" in name:
            raise ValueError("must not contain a slash")
        if not name.isprintable() or name != name.strip():
            raise ValueError("must be printable, without blanks at its ends")
        return name


class Factor(Schema):
    """A number above 0, which may be sent as text."""

    def convert(self, value: JSON, where: str, problems: Problems) -> float:
        if isinstance(value, str) and len(value) <= MAX_LENGTH and value.isascii():
            whole, _, part = value.partition(".")
            value = float(value) if whole.isdigit() and (part or "0").isdigit() else None
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not (
                math.isfinite(value) and 0 < value <= _MAX_FACTOR):
            raise ValueError("must be a number above 0")
        return float(value)

    def non_null(self) -> JSONObject:
        return {"anyOf": [{"type": "number", "exclusiveMinimum": 0},
                          {"type": "string", "pattern": r"^[0-9]+\.?[0-9]*$"}]}


_SHAPES: dict[str, Schema] = {
    "flavorid": FlavorId(), "name": FlavorName(), "memory_mb": Integer(1, MAX_AMOUNT),
    "root_gb": Integer(0, MAX_AMOUNT), "swap": Integer(0, MAX_AMOUNT), "ephemeral_gb": Integer(0, MAX_AMOUNT),
    "vcpus": Integer(1, MAX_AMOUNT), "is_public": Boolean(), "rxtx_factor": Factor(),
    "description": Text(MAX_DESCRIPTION, multiline=True, nullable=True),
}
_REQUIRED = ("name", "ram", "vcpus", "disk")

FLAVOR_CREATE = Object({"flavor": Object({name: _SHAPES[column] for name, column in FIELDS.items()},
                                         required=_REQUIRED)},
                       required=("flavor",))
#: Below 2.55.
CREATE_WITHOUT_DESCRIPTION = Object(
    {"flavor": Object({name: _SHAPES[column] for name, column in FIELDS.items() if name != "description"},
                      required=_REQUIRED)}, required=("flavor",))
FLAVOR_UPDATE = Object({"flavor": Object({"description": _SHAPES["description"]}, required=("description",))},
                       required=("flavor",))
#: Keys and values are checked together with what they mean, so that a reply has all problems.
EXTRA_SPECS = Object({"extra_specs": Map()}, required=("extra_specs",))
EXTRA_SPEC = Map()


#: A fact is checked with what its templates mean, so that a reply has all problems.
FACT = Map()

#: Maximum number of rules of one request; the size of its body is limited as well.
MAX_RULES = 100_000
#: The same of facts.
MAX_FACTS = 10_000


class Rule(schema.Map):
    """A rule."""

    #: Schema of the rules that the engine accepts, for clients that check a rule before they send it.
    json_schema = staticmethod(rule_schema)


class RuleOfSet(schema.Anything):
    """A rule, as for ``POST``."""

    def non_null(self) -> JSONObject:
        return {"type": "object"}


class Bundle(schema.Schema):
    """A name."""

    def convert(self, value: JSON, where: str, problems: schema.Problems) -> Any:
        if reason := rule_fields.name_problem(value):
            raise ValueError(reason)
        return value

    def non_null(self) -> JSONObject:
        return {"type": "string"}


RULE_CREATE = Rule()
#: Each rule is checked like that of a POST; all problems of all rules are reported together.
RULE_SET = schema.Object(
    {"rules": schema.List(RuleOfSet(nullable=True), max_items=MAX_RULES), "prune": schema.Boolean(),
     "dry_run": schema.Boolean(), "bundle": Bundle(nullable=True)}, required=("rules",))
#: Facts are checked like those of a POST; all problems of all facts are reported together.
FACT_SET = schema.Object(
    {"facts": schema.List(RuleOfSet(nullable=True), max_items=MAX_FACTS), "prune": schema.Boolean(),
     "dry_run": schema.Boolean(), "bundle": Bundle(nullable=True)}, required=("facts",))
#: Rules are checked like those of a POST; the report is checked as that of a ramdisk.
RULE_DRY_RUN = schema.Object({
    "node": schema.Text(max_length=255, min_length=1), "nodes": schema.Map(),
    "where": schema.Text(MAX_CLAUSE, min_length=1),
    "version": schema.Integer(1, 2**63 - 1), "report": schema.Map(),
    "imagined": schema.Boolean(), "rules": schema.List(RuleOfSet(nullable=True), max_items=MAX_RULES),
    "as_if": schema.List(RuleOfSet(nullable=True), max_items=MAX_RULES), "compare": schema.Boolean()})
#: The rule is checked like that of a POST. ``marker`` is the one of the reply before.
RULE_MATCHES = schema.Object({
    "rule": RuleOfSet(), "nodes": schema.Map(), "limit": schema.Integer(1, 1000), "marker": schema.Uuid()},
    required=("rule",))
NODE_SEARCH = schema.Object({
    "conditions": schema.List(schema.Map()), "where": schema.Text(MAX_CLAUSE, min_length=1)})
CLAUSE = schema.Object({"where": schema.Text(MAX_CLAUSE, min_length=1)}, required=("where",))
ROLLBACK = schema.Object({"dry_run": schema.Boolean()}, nullable=True)
#: Every field that a PATCH may write; the rest can be read by a patch.
RULE_PATCHABLE = RULE.where(lambda entry: entry.patch)


BOOT_DEVICE = schema.Object(
    {"boot_device": schema.Text(255, min_length=1), "persistent": schema.Boolean(nullable=True)},
    required=("boot_device",))
#: An empty body, or an empty object.
NOTHING = schema.Object({}, nullable=True)
#: Schema of arguments that the interface checks.
INDICATOR = schema.Object({"state": schema.Text(255, min_length=1)}, required=("state",))
BOOT_MODE = schema.Object({"target": schema.Enum("uefi", "bios")}, required=("target",))
SECURE_BOOT = schema.Object({"target": schema.Boolean()}, required=("target",))
#: The node's RAID interface checks its content.
RAID_CONFIG = schema.Map()
CONSOLE = schema.Object({"enabled": schema.Boolean()}, required=("enabled",))
VMEDIA = schema.Object({
    "device_type": schema.Enum(*DEVICE_TYPES), "image_url": schema.HttpUrl(2048),
    "image_download_source": schema.Enum("http", "local", "swift", nullable=True),
}, required=("device_type", "image_url"))
#: Types of drives, separated by commas.
VMEDIA_TYPES = schema.Object({"device_types": schema.Text(255, min_length=1)}, nullable=True)
#: The arguments of a vendor method, which checks them.
VENDOR_ARGUMENTS = schema.Map(nullable=True)


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


_NODE_SPECIAL = {"name": schema.Name(_RESERVED_NAMES)}
#: Every field that a PATCH may write. ``null`` means the field's default.
NODE_FIELDS = schema.of(NODE, NODE.patchable, _NODE_SPECIAL)
#: Body of requests to run hooks and rules again.
REAPPLY = schema.Object({"dry_run": schema.Boolean(), "allow_deployed": schema.Boolean()}, nullable=True)
NODE_CREATE = schema.Object(
    schema.of(NODE, NODE.where(lambda entry: entry.create), _NODE_SPECIAL), required=NODE.required)
#: As ``CREATE``, for a node that waits for the report of its ramdisk.
ENROLL = schema.Object(
    {name: item for name, item in NODE_CREATE.fields.items() if name not in ("inspect_interface", "instance_uuid")},
    required=NODE_CREATE.required)

_NODE_STEP = {
    "interface": schema.Enum(*STEP_INTERFACES),
    "step": schema.Text(255, min_length=1),
    "args": schema.Map(nullable=True),
}
_STEPS = schema.List(schema.Object(_NODE_STEP, required=("interface", "step")), max_items=1000, nullable=True)
_DEPLOY_STEPS = schema.List(schema.Object(
    {**_NODE_STEP, "priority": schema.Integer(0, 2**31 - 1)}, required=("interface", "step", "args", "priority")),
    max_items=1000, nullable=True)


class ConfigDrive(schema.Schema):
    """A config drive: a string (base64 of a gzipped image, or a URL), or an object from which one is built."""

    def convert(self, value: JSON, where: str, problems: schema.Problems) -> Any:
        if not isinstance(value, (str, dict)):
            raise ValueError("must be a string or an object")
        return value

    def non_null(self) -> JSONObject:
        return {"type": ["string", "object"]}


class ProvisionTarget(schema.Schema):
    """A verb of ``states/provision``."""

    def convert(self, value: JSON, where: str, problems: schema.Problems) -> str:
        if not isinstance(value, str) or value not in states.VERB_VERSIONS:
            raise ValueError(f"must be one of {', '.join(sorted(states.VERB_VERSIONS))}")
        return value

    def non_null(self) -> JSONObject:
        return {"type": "string", "enum": sorted(states.VERB_VERSIONS)}


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
#: Body of an action on many nodes.
OPERATION_CREATE = schema.Object({
    "action": schema.Enum(*ACTIONS, REAPPLY_ACTION), "nodes": schema.Map(),
    "uuids": schema.List(schema.Uuid(), min_items=1, max_items=10_000), "dry_run": schema.Boolean(),
    "reason": schema.Text(4096, multiline=True)}, required=("action",))


class Trait(schema.Schema):
    """The name of a standard or custom trait."""

    def convert(self, value: JSON, where: str, problems: schema.Problems) -> Any:
        if not traits.is_trait(value):
            raise ValueError("must be a standard trait (os-traits), or CUSTOM_ followed by A-Z, 0-9 and _ "
                             f"(at most {traits.MAX_LENGTH} characters)")
        return value

    def non_null(self) -> JSONObject:
        return {"type": "string", "pattern": "^[A-Z0-9_]+$", "maxLength": traits.MAX_LENGTH}


TRAITS = schema.Object({"traits": schema.List(Trait())}, required=("traits",))
VIF = schema.Object({
    # It is in the URL by which it is detached. As in Ironic: a UUID, or a name.
    "id": schema.Text(255, min_length=1, pattern=schema.UNRESERVED, expected=(
        "must be a UUID or a name: letters, digits, '-', '.', '_' and '~' are allowed")),
    "port_uuid": schema.Uuid(nullable=True), "portgroup_uuid": schema.Uuid(nullable=True),
}, required=("id",), extra=True)


_IDENT = schema.Text(255, min_length=1)
_ALLOCATION_SPECIAL = {"traits": schema.List(Trait(), max_items=MAX_TRAITS, nullable=True),
                       "candidate_nodes": schema.List(_IDENT, max_items=MAX_CANDIDATES, nullable=True)}

ALLOCATION_CREATE = schema.Object({
    **schema.of(ALLOCATION, ALLOCATION.where(lambda entry: entry.create), _ALLOCATION_SPECIAL),
    "node": schema.Text(255, min_length=1, nullable=True)})
#: Every field that a PATCH may write. ``null`` means the field's default.
ALLOCATION_PATCHED = schema.Object(schema.of(ALLOCATION, ALLOCATION.patchable))


_TEMPLATE_STEP = schema.Object({
    "interface": schema.Enum(*STEP_INTERFACES), "step": schema.Text(MAX_STEP_NAME, min_length=1), "args": schema.Map(),
    "priority": schema.Integer(0, MAX_PRIORITY),
}, required=STEP_FIELDS)

#: Every field that a PATCH may write. ``null`` means the field's default.
TEMPLATE_FIELDS = schema.of(DEPLOY_TEMPLATE, DEPLOY_TEMPLATE.patchable, {
    "name": Trait(), "steps": schema.List(_TEMPLATE_STEP, min_items=1, max_items=MAX_TEMPLATE_STEPS)})

TEMPLATE_CREATE = schema.Object({**TEMPLATE_FIELDS, "uuid": schema.Uuid(nullable=True)},
                                required=DEPLOY_TEMPLATE.required)
TEMPLATE_PATCHED = schema.Object(TEMPLATE_FIELDS, required=DEPLOY_TEMPLATE.required)


#: Every field that a PATCH may write. ``null`` means the field's default.
PORTGROUP_FIELDS = schema.of(PORT_GROUP, PORT_GROUP.patchable)
PORTGROUP_CREATE = schema.Object(
    schema.of(PORT_GROUP, PORT_GROUP.where(lambda entry: entry.create)), required=("node_uuid",))


#: Every field that a PATCH may write. ``null`` means the field's default.
PORT_FIELDS = schema.of(PORT, PORT.patchable)
#: The node is named by ``node_uuid`` or, since API 1.94, by ``node_ident``; one of them is required.
PORT_CREATE = schema.Object(
    {**schema.of(PORT, PORT.where(lambda entry: entry.create)), "node_ident": schema.Text(255, min_length=1)},
    required=("address",))


class AgentUrl(schema.HttpUrl):
    """The URL of an agent: a host, optionally a port, nothing else. The service adds the paths of its requests."""

    def __init__(self) -> None:
        super().__init__(1024)

    def convert(self, value: JSON, where: str, problems: schema.Problems) -> str:
        url = urls.parse(super().convert(value, where, problems))
        if url.user is not None or url.rest not in ("", "/"):
            raise ValueError("must be an HTTP or HTTPS URL of a host, without user, password, path and query")
        return str(url)


#: Any object. ``inspection.payload`` knows what belongs inside.
CONTINUE_INSPECTION = schema.Map()

HEARTBEAT = schema.Object({
    "callback_url": AgentUrl(),
    "agent_token": schema.Text(max_length=255),
    "agent_version": schema.Text(max_length=255, nullable=True),
    "agent_verify_ca": schema.Text(max_length=64 * 1024, multiline=True, nullable=True),
    "agent_status": schema.Enum("start", "end", "error", nullable=True),
    "agent_status_message": schema.Text(max_length=4096, multiline=True, nullable=True),
}, required=("callback_url", "agent_token"))

#: Field -> first minor version that accepts it.
HEARTBEAT_SINCE = {
    "agent_version": versions.AGENT_VERSION, "agent_verify_ca": versions.AGENT_VERIFY_CA,
    "agent_status": versions.AGENT_STATUS, "agent_status_message": versions.AGENT_STATUS,
}


class LegacyRule(schema.Map):
    """A rule in the form of ironic-inspector."""


LEGACY_RULE = LegacyRule()


class _Step(schema.Object):
    """A step of a runbook. Without ``args`` it has none."""

    def convert(self, value: JSON, where: str, problems: schema.Problems) -> JSONObject:
        loaded = super().convert(value, where, problems)
        return {"args": {}, **loaded}


_RUNBOOK_STEP = _Step({
    "interface": schema.Enum(*STEP_INTERFACES), "step": schema.Text(MAX_STEP_NAME, min_length=1), "args": schema.Map(),
    "order": schema.Integer(0, MAX_PRIORITY),
}, required=("interface", "step", "order"))
_RUNBOOK_SPECIAL = {"name": Trait(), "steps": schema.List(_RUNBOOK_STEP, min_items=1, max_items=MAX_RUNBOOK_STEPS)}

RUNBOOK_CREATE = schema.Object(
    schema.of(RUNBOOK, RUNBOOK.where(lambda entry: entry.create), _RUNBOOK_SPECIAL), required=RUNBOOK.required)
#: Every field that a PATCH may write. ``null`` means the field's default.
RUNBOOK_PATCHED = schema.Object(schema.of(RUNBOOK, RUNBOOK.patchable, _RUNBOOK_SPECIAL))


WEBHOOK = webhooks.WEBHOOK


class WebhookSecret(schema.Text):
    """The secret of a webhook, as Standard Webhooks writes it."""

    def convert(self, value: JSON, where: str, problems: schema.Problems) -> str:
        text = super().convert(value, where, problems)
        if reason := webhooks.problem_of_secret(text):
            raise ValueError(reason)
        return text


_WEBHOOK_SPECIAL = {
    "url": schema.HttpUrl(webhooks.MAX_URL), "secret": WebhookSecret(nullable=True),
    "level": schema.Enum(*events.LEVELS, nullable=True),
    "events": schema.List(schema.Text(64, min_length=1, pattern=r"[A-Za-z0-9_.*]+"), min_items=1,
                          max_items=webhooks.MAX_PATTERNS, nullable=True)}
WEBHOOK_CREATE = schema.Object(
    schema.of(WEBHOOK, WEBHOOK.where(lambda entry: entry.create), _WEBHOOK_SPECIAL), required=WEBHOOK.required)
WEBHOOK_PATCHED = schema.Object(schema.of(WEBHOOK, WEBHOOK.patchable, _WEBHOOK_SPECIAL))
#: UUIDs of events; none: all.
REDELIVER = schema.Object({"events": schema.List(schema.Uuid(), min_items=1, max_items=1000)}, nullable=True)


_VOLUME_SPECIAL = {"boot_index": schema.Integer(0, 2**31 - 1)}


def _create(table: Fields) -> schema.Object:
    return schema.Object(
        schema.of(table, table.where(lambda entry: entry.create), _VOLUME_SPECIAL), required=table.required)


CREATE_CONNECTOR, CREATE_TARGET = _create(VOLUME_CONNECTOR), _create(VOLUME_TARGET)
#: Every field that a PATCH may write. ``null`` means the field's default.
PATCHED_CONNECTOR = schema.Object(schema.of(VOLUME_CONNECTOR, VOLUME_CONNECTOR.patchable))
PATCHED_TARGET = schema.Object(schema.of(VOLUME_TARGET, VOLUME_TARGET.patchable, _VOLUME_SPECIAL))
