"""API versions ``1.N`` ("microversions"): the numbers are Ironic's, so that its clients can negotiate as usual.

A constant is the first minor version that supports something; those of fields and filters are in the tables of
``models``. What a version does not support is omitted from its replies, and naming it (body, patch, ``fields``,
filter, sort key) is 406. Clients select a version with one of two headers; without one they get the oldest version.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ironic_rules.api import version_text
from ironic_rules.exceptions import NotAcceptable
from ironic_rules.models import states
from ironic_rules.models.fields import Fields

MIN = 1
MAX = 96

NAME = 5  # node.name, and names in place of UUIDs
FIELDS = 8  # ?fields=
ANY_NAME = 10  # names need not be host names
ENROLL = 11  # new nodes start in "enroll"
RAID = 12  # states/raid, drivers/{driver}/raid
DRIVER_PROPERTIES_LINK = 14
RAMDISK = 22  # lookup and heartbeat
PORTGROUPS = 23
UNSET_CHASSIS = 25  # chassis_uuid of a node can be removed
SOFT_POWER = 27  # soft power targets, and timeouts
VIFS = 28
INJECT_NMI = 29
DRIVER_DETAILS = 30  # ?type=, ?detail= of drivers
VOLUME = 32
REBUILD_CONFIGDRIVE = 35
AGENT_VERSION = 36  # heartbeat: agent_version
TRAITS = 37
INSPECT_WAIT = 39
BIOS = 40
INSPECT_ABORT = 41
DETAIL = 43  # ?detail= on every collection
RESET_INTERFACES = 45
CONDUCTORS = 49
ALLOCATIONS = 52
DEPLOY_TEMPLATES = 55
CONFIGDRIVE_OBJECT = 56
ALLOCATION_UPDATE = 57
INDICATORS = 63
VIF_PORT = 67  # port_uuid, portgroup_uuid of a VIF
AGENT_VERIFY_CA = 68
AGENT_STATUS = 72
BIOS_REGISTRY = 74  # bios?detail=, ?fields=, and what the registry says of one setting
SET_BOOT_MODE = 76  # states/boot_mode, states/secure_boot
HISTORY = 78
INVENTORY = 81
SHARDS = 82
CONTINUE_INSPECTION = 84
FIRMWARE = 86
PORT_NAME = 88
VMEDIA = 89
NO_SUFFIX = 91  # URLs must not end in SUFFIX any more
RUNBOOKS = 92
VMEDIA_GET = 93
INSPECTION_RULES = 96

MIN_STRING = f"1.{MIN}"
MAX_STRING = f"1.{MAX}"
HEADER = "X-OpenStack-Ironic-API-Version"
HEADER_MIN = "X-OpenStack-Ironic-API-Minimum-Version"
HEADER_MAX = "X-OpenStack-Ironic-API-Maximum-Version"
SUFFIX = ".json"
SERVICE_TYPES = ("baremetal", "ironic")


def parse(own: str | None, standard: str | None) -> int:
    """Return the minor version that a request selects.

    :param own: value of ``X-OpenStack-Ironic-API-Version``: ``1.N`` or ``latest``
    :param standard: value of ``OpenStack-API-Version``: ``baremetal 1.N``, in a comma-separated list; has precedence
    :raises NotAcceptable: 406, malformed or not between MIN and MAX
    """
    text = (version_text.of_service(standard, SERVICE_TYPES) if standard else None) or own
    if text is None:
        return MIN
    return version_text.minor_of(text, 1, MIN, MAX)


def too_new(name: str, since: int) -> NotAcceptable:
    """Return the error for a request that names something that requires API 1.``since``."""
    return NotAcceptable(f"Request not acceptable. {name} needs at least API version 1.{since}.")


def required(since: int) -> str:
    """Return the text for a request that has a lower version than its route, often because it names none."""
    return f"API version 1.{since} or newer is required, as in the header {HEADER}: 1.{since}."


def refuse_fields(table: Fields, named: Iterable[str], minor: int) -> None:
    """Check that version ``minor`` supports every field that a request names.

    :raises NotAcceptable: 406, with the version that is needed
    """
    _refuse({name: table.since(name) for name in table.hidden(minor).intersection(named)}, minor)


def refuse_filters(table: Fields, named: Iterable[str], minor: int) -> None:
    """Check that version ``minor`` supports every filter that a request names; otherwise as :func:`refuse_fields`."""
    _refuse({name: table.filters[name].since for name in named if name in table.filters}, minor)


def _refuse(since: Mapping[str, int], minor: int) -> None:
    newer = {name: first for name, first in since.items() if minor < first}
    if newer:
        raise too_new(", ".join(sorted(newer)), max(newer.values()))


def visible_state(state: str | None, minor: int) -> str | None:
    """Return how version ``minor`` shows a provision state: states that it does not have are shown by older names."""
    if state == states.INSPECTWAIT and minor < INSPECT_WAIT:
        return states.INSPECTING
    if state == states.AVAILABLE and minor < 2:
        return None
    return state


def initial_state(minor: int) -> str:
    """Return the provision state of a node that is created with version ``minor``."""
    return states.ENROLL if minor >= ENROLL else states.AVAILABLE
