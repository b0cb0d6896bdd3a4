"""Nodes: their fields, their history, the hardware that their BMCs reported last, and the reasons why they failed.

Errors that differ only in a machine's own addresses and numbers have one reason.
"""

from __future__ import annotations

import datetime
import hashlib
import re
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ironic_rules.models import states
from ironic_rules.models.documents import JSON, JSONObject
from ironic_rules.models.fields import Fields, Filter, Text, Type, field, form

_LONG = 4096
#: Maximum number of characters of a question about nodes.
MAX_CLAUSE = 10240
#: Reasons for which the service puts a node into maintenance (Ironic, "Node fault").
FAULTS = ("power failure", "clean failure", "rescue abort failure", "service failure")


@form
class Node(Protocol):
    """A bare-metal node. Rows of the table satisfy this protocol, and so do drafts, which can also be changed.

    The numbers are minor versions of the API (https://docs.openstack.org/ironic, "REST API Version History").
    """

    id: int = field(shown=False)
    revision: int = field(shown=False)

    uuid: str = field(create=True, text=Text.UUID, summary=True)
    created_at: datetime.datetime = field()
    updated_at: datetime.datetime | None = field()
    allocation_uuid: str | None = field(since=52)
    automated_clean: bool | None = field(since=47, patch=True, rules=True)
    bios_interface: str | None = field(since=40, patch=True, rules=True)
    boot_interface: str | None = field(since=31, patch=True, rules=True)
    boot_mode: str | None = field(since=75, hooks=True, state=True, choices=("uefi", "bios"))
    chassis_uuid: str | None = field(patch=True, text=Text.UUID, filter=1)
    clean_step: JSONObject = field(since=7, secret=True)
    conductor_group: str = field(since=46, patch=True, rules=True, filter=46, text=Text.GROUP)
    console_enabled: bool = field(steps=True, state=True)
    console_interface: str | None = field(since=31, patch=True, rules=True)
    disable_power_off: bool = field(since=95, patch=True, steps=True)
    deploy_interface: str | None = field(since=31, patch=True, rules=True)
    deploy_step: JSONObject = field(since=44, secret=True)
    description: str | None = field(since=51, patch=True, rules=True, text=Text.LINES, max_length=_LONG)
    driver: str = field(patch=True, required=True, rules=True, filter=16, min_length=1)
    driver_info: JSONObject = field(patch=True, rules=True, secret=True)
    driver_internal_info: JSONObject = field(since=3, hooks=True, secret=True)
    extra: JSONObject = field(patch=True, rules=True)
    fault: str | None = field(since=42, steps=True, filter=42, choices=FAULTS)
    firmware_interface: str | None = field(since=86, patch=True, rules=True)
    inspection_finished_at: datetime.datetime | None = field(since=6)
    inspection_started_at: datetime.datetime | None = field(since=6)
    inspect_interface: str | None = field(since=31, patch=True, rules=True)
    instance_info: JSONObject = field(patch=True, rules=True, secret=True)
    instance_uuid: str | None = field(patch=True, text=Text.UUID, summary=True, filter=1)
    last_error: str | None = field(state=True)
    lessee: str | None = field(since=65, patch=True, rules=True, filter=65)
    maintenance: bool = field(patch=True, hooks=True, summary=True, filter=1)
    maintenance_reason: str | None = field(create=True, hooks=True, text=Text.LINES, max_length=_LONG)
    management_interface: str | None = field(since=31, patch=True, rules=True)
    name: str | None = field(since=5, patch=True, rules=True, text=Text.NAME, summary=True)
    network_data: JSONObject = field(since=66, patch=True, steps=True)
    network_interface: str | None = field(since=20, patch=True, rules=True)
    owner: str | None = field(since=50, patch=True, rules=True, filter=50)
    parent_node: str | None = field(since=83, patch=True, filter=83, max_length=36)
    power_interface: str | None = field(since=31, patch=True, rules=True)
    power_state: str | None = field(steps=True, state=True, summary=True, choices=(states.POWER_ON, states.POWER_OFF))
    properties: JSONObject = field(patch=True, rules=True)
    protected: bool = field(since=48, create=False, patch=True, rules=True)
    protected_reason: str | None = field(since=48, create=False, patch=True, text=Text.LINES, max_length=_LONG)
    provision_state: str = field(state=True, summary=True, filter=9, choices=sorted(states.ALL))
    provision_updated_at: datetime.datetime | None = field(state=True)
    raid_config: JSONObject = field(since=12, steps=True, state=True)
    raid_interface: str | None = field(since=31, patch=True, rules=True)
    rescue_interface: str | None = field(since=38, patch=True, rules=True)
    reservation: str | None = field()
    resource_class: str | None = field(since=21, patch=True, rules=True, filter=21, max_length=80)
    retired: bool = field(since=61, patch=True, rules=True, filter=61)
    retired_reason: str | None = field(since=61, patch=True, rules=True, text=Text.LINES, max_length=_LONG)
    secure_boot: bool | None = field(since=75, hooks=True, state=True)
    service_step: JSONObject = field(since=87, secret=True)
    shard: str | None = field(since=82, patch=True)
    storage_interface: str | None = field(since=33, patch=True, rules=True)
    target_power_state: str | None = field(state=True)
    target_provision_state: str | None = field(state=True)
    target_raid_config: JSONObject = field(since=12, steps=True, state=True)
    vendor_interface: str | None = field(since=31, patch=True, rules=True)
    auto_discovered: bool = field(filter=1)
    inspection_scope: str | None = field(patch=True, rules=True, filter=1)

    reservation_token: str | None = field(shown=False)
    reservation_purpose: str | None = field(shown=False)
    reservation_resumptions: int = field(shown=False)
    reserved_at: datetime.datetime | None = field(shown=False)
    agent_token_hash: str | None = field(shown=False, steps=True)
    failed_rule: str | None = field(shown=False)
    failed_hook: str | None = field(shown=False)
    error_template: str | None = field(shown=False)
    natural_name: str | None = field(shown=False)


class NodeFound(Protocol):
    """The columns of a node that a ramdisk's lookup reads; a whole row costs several times as much."""

    id: int
    uuid: str
    provision_state: str
    conductor_group: str
    properties: JSONObject
    instance_info: JSONObject
    driver_internal_info: JSONObject


FOUND_BY_RAMDISK = tuple(NodeFound.__annotations__)

#: Fields of replies that are links below the node.
SUB_RESOURCES = ("ports", "states", "portgroups", "volume")

NODE = Fields.of(
    Node,
    # Traits and conductor come from other tables.
    computed={"traits": 37, "links": 1, "conductor": 49, "ports": 1, "states": 14, "portgroups": 24,
              "volume": 32},
    filters=(Filter("associated", Type.BOOLEAN), Filter("shard", since=82, many=True),
             Filter("sharded", Type.BOOLEAN, since=82), Filter("include_children", Type.BOOLEAN, since=83),
             Filter("conductor", since=49), Filter("project", since=65), Filter("description_contains", since=51),
             Filter("failure", since=96), Filter("where", since=96, max_length=MAX_CLAUSE)))

_SUFFIX = "_interface"
#: A node's interfaces by their fields and by their kinds: ``power_interface``, ``power``.
INTERFACE_FIELDS = NODE.where(lambda entry: entry.name.endswith(_SUFFIX))
INTERFACES = tuple(name.removesuffix(_SUFFIX) for name in INTERFACE_FIELDS)
#: Fields that determine which interfaces a node has.
CHOOSES_INTERFACES = frozenset({"driver", "conductor_group", *INTERFACE_FIELDS})


class HistoryEntry(Protocol):
    """A row of the history. ``event`` describes what happened, ``event_type`` is the operation during which it did."""

    id: int
    uuid: str
    node_id: int
    created_at: datetime.datetime
    conductor: str | None
    event_type: str | None
    severity: str | None
    event: str | None
    user: str | None
    inspection_uuid: str | None
    request_id: str | None


@dataclass(frozen=True, slots=True)
class BIOSSetting:
    """A setting, and what the BMC's registry of attributes says about it; None: it does not say that.

    :ivar value: as text; None if the setting has no value
    :ivar attribute_type: ``Enumeration``, ``String``, ``Integer``, ``Boolean`` or ``Password``
    :ivar allowable_values: those of an enumeration
    """

    name: str
    value: str | None
    attribute_type: str | None = None
    allowable_values: tuple[str, ...] | None = None
    lower_bound: int | None = None
    max_length: int | None = None
    min_length: int | None = None
    read_only: bool | None = None
    reset_required: bool | None = None
    unique: bool | None = None
    upper_bound: int | None = None


@dataclass(frozen=True, slots=True)
class FirmwareComponent:
    """A component with firmware: ``bios``, ``bmc``, or ``nic:<name>``."""

    component: str
    current_version: str | None


class StoredSetting(Protocol):
    """A row of ``bios_settings``: a :class:`BIOSSetting` and when it was read first, and changed last."""

    name: str
    value: str | None
    attribute_type: str | None
    created_at: datetime.datetime
    updated_at: datetime.datetime | None


class StoredComponent(Protocol):
    """A row of ``firmware_components``.

    :ivar initial_version: the first one that was read
    :ivar last_version_flashed: the last one to which it was seen to change
    """

    component: str
    initial_version: str | None
    current_version: str | None
    last_version_flashed: str | None
    created_at: datetime.datetime
    updated_at: datetime.datetime | None


def as_text(value: JSON) -> str | None:
    """Return the value of a setting as text: BMCs report texts, numbers and booleans."""
    return None if value is None else str(value)


#: The states of nodes that have failed.
FAILED_STATES = frozenset({states.ERROR, states.DEPLOYFAIL, states.CLEANFAIL, states.INSPECTFAIL, states.ADOPTFAIL,
                           states.RESCUEFAIL, states.UNRESCUEFAIL, states.SERVICEFAIL})
#: Text in place of a machine's own UUIDs, addresses and numbers.
OWN_PART = "…"
#: Maximum numbers of characters of a reason, and of ``OWN_PART`` in it.
MAX_REASON = 300
_MOST_OWN = 16
_OWN = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?:[0-9a-f]{2}:){5}[0-9a-f]{2}|"
                  r"(?<!\bIR-)\b\d+(?:\.\d+)*\b", re.ASCII | re.IGNORECASE)


class Cause(NamedTuple):
    """The rule or the hook that failed an inspection.

    :ivar is_rule: whether it is a rule;  by: the UUID of the rule, or the name of the hook
    :ivar template: the message of the rule before values were filled in, or the reason, as :func:`failure_reason`
        returns it; at most ``MAX_REASON`` characters
    """

    is_rule: bool
    by: str
    template: str

    def columns(self) -> JSONObject:
        """Return the values of the node's columns."""
        return {"failed_rule" if self.is_rule else "failed_hook": self.by, "error_template": self.template}


#: The columns of a cause; they are empty as soon as the node has another error.
CAUSE = ("failed_rule", "failed_hook", "error_template")


class Failure(NamedTuple):
    """Nodes that failed in the same state for the same reason.

    :ivar reason: "" if no error is stored
    :ivar rule: the UUID of the rule that failed their inspections;  hook: the name of the hook that did
    """

    provision_state: str
    reason: str
    number: int
    rule: str | None = None
    hook: str | None = None

    @property
    def ident(self) -> str:
        """The identifier of the group: 16 hexadecimal digits."""
        text = "\n".join(filter(None, (self.provision_state, self.reason, self.rule, self.hook)))
        return hashlib.sha256((text if self.reason else f"{text}\n").encode()).hexdigest()[:16]

    @property
    def has_cause(self) -> bool:
        """True if a rule or a hook failed the inspections."""
        return self.rule is not None or self.hook is not None


_DIGITS = re.compile(r"\d+", re.ASCII)
#: Maximum number of characters of a natural name.
MAX_NATURAL = 255


def natural_name(name: str | None) -> str | None:
    """Return a text by which names are sorted as people count: ``rack-9`` before ``rack-10``, without regard to case.

    Each number is preceded by the number of its digits.
    """
    if name is None:
        return None

    def numbered(match: re.Match[str]) -> str:
        digits = match[0].lstrip("0") or "0"
        return f"{min(len(digits), 99):02d}{digits}"

    return _DIGITS.sub(numbered, name.lower())[:MAX_NATURAL]


def failure_reason(error: str) -> str:
    """Return the reason of an error, or of its beginning, of at most ``LENGTH`` characters.

    ``OWN`` stands for a machine's own UUIDs, addresses and numbers, and for what follows the beginning.
    """
    if len(error) >= MAX_REASON:
        # Perhaps the last word is a part of a UUID.
        error = f"{error[:MAX_REASON].rpartition(' ')[0]} {OWN_PART}"
    parts = _OWN.sub(OWN_PART, error).split(OWN_PART)
    return OWN_PART.join(parts) if len(parts) <= _MOST_OWN else f"{OWN_PART.join(parts[:_MOST_OWN])}{OWN_PART}"
