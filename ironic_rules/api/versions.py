"""API versions: those of this API (``1.N``) and of Nova's compute API (``2.N``), and their negotiation.

The numbers of ``1.N`` ("microversions") are Ironic's, so that its clients can negotiate as usual. A constant is the
first minor version that supports something; those of fields and filters are in the tables of ``models``. Fields that a
version does not support are omitted from its replies, and naming it (body, patch, ``fields``, filter, sort key) is 406.
Clients select a version with one of two headers; without one they get the oldest version.

Below ``/compute/v2.1`` the numbers are Nova's, and clients select one with ``OpenStack-API-Version: compute 2.N`` or
``X-OpenStack-Nova-API-Version: 2.N``. Extra specs are validated from ``VALIDATION`` on, so that older clients can write
what they did.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from ironic_rules.exceptions import NotAcceptable
from ironic_rules.httpd import faults
from ironic_rules.models import states
from ironic_rules.models.fields import Fields

_FORM = re.compile(r"([0-9]{1,3})\.([0-9]{1,9})")


def minor_of(text: str, major: int, oldest: int, newest: int) -> int:
    """Return the minor version of ``MAJOR.MINOR`` or ``latest``.

    :raises NotAcceptable: 406, malformed, of another major version, or not in the range
    """
    text = text.strip()
    if text.lower() == "latest":
        return newest
    match = _FORM.fullmatch(text)
    supported = f"Supported: {major}.{oldest} to {major}.{newest}."
    if match is None:
        raise NotAcceptable(f"The API version is malformed. {supported}")
    if int(match[1]) != major or not oldest <= int(match[2]) <= newest:
        raise NotAcceptable(f"Version {match[0]} is not supported. {supported}")
    return int(match[2])


def version_of_service(header: str, names: Collection[str]) -> str | None:
    """Return the version in ``OpenStack-API-Version`` that is for a service, which has one of these names."""
    for entry in header.split(","):
        service, _, version = entry.strip().partition(" ")
        if service.lower() in names:
            return version
    return None


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
    text = (version_of_service(standard, SERVICE_TYPES) if standard else None) or own
    if text is None:
        return MIN
    return minor_of(text, 1, MIN, MAX)


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


COMPUTE_MIN = 1
COMPUTE_MAX = 86

COMPUTE_DESCRIPTION = 55  # description, and PUT of a flavor
COMPUTE_VALIDATION = 86

COMPUTE_MIN_STRING = f"2.{COMPUTE_MIN}"
COMPUTE_MAX_STRING = f"2.{COMPUTE_MAX}"
COMPUTE_HEADER = "OpenStack-API-Version"
COMPUTE_OLD_HEADER = "X-OpenStack-Nova-API-Version"
#: The first segment of the paths that these versions apply to.
COMPUTE_SEGMENT = "compute"
COMPUTE_SERVICE_TYPE = "compute"


def is_compute_request(environ: Mapping[str, object]) -> bool:
    """Return whether a WSGI request is one for the compute API."""
    return str(environ.get("PATH_INFO", "")).lstrip("/").partition("/")[0] == COMPUTE_SEGMENT


def negotiate_compute(environ: Mapping[str, Any]) -> int:
    """Return the minor version that a WSGI request selects.

    :raises NotAcceptable: 406, malformed or not between MIN and MAX
    """
    text = version_of_service(environ.get("HTTP_OPENSTACK_API_VERSION") or "", (COMPUTE_SERVICE_TYPE,))
    text = text or environ.get("HTTP_X_OPENSTACK_NOVA_API_VERSION")
    if text is None:
        return COMPUTE_MIN
    return minor_of(text, 2, COMPUTE_MIN, COMPUTE_MAX)


def compute_headers(minor: int) -> list[tuple[str, str]]:
    """Return the headers of a reply of version ``2.minor``."""
    return [(COMPUTE_HEADER, f"{COMPUTE_SERVICE_TYPE} 2.{minor}"), (COMPUTE_OLD_HEADER, f"2.{minor}"),
            ("Vary", f"{COMPUTE_HEADER}, {COMPUTE_OLD_HEADER}")]


_BOUNDS = ((HEADER_MIN, MIN_STRING), (HEADER_MAX, MAX_STRING))


class Microversion:
    """Every reply states the supported versions and the one that was used; a 406 states only the former."""

    def __init__(self, app: WSGIApplication) -> None:
        self._app = app

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        is_compute = is_compute_request(environ)
        try:
            minor = negotiate_compute(environ) if is_compute else parse(
                environ.get("HTTP_X_OPENSTACK_IRONIC_API_VERSION"), environ.get("HTTP_OPENSTACK_API_VERSION"))
        except NotAcceptable as error:
            fault = faults.from_status(error.code, str(error))
            bounds = () if is_compute else _BOUNDS
            return faults.send(fault._replace(headers=[*fault.headers, *bounds]), environ, start_response)
        environ["ironic_rules.version"] = minor
        added = compute_headers(minor) if is_compute else [*_BOUNDS, (HEADER, f"1.{minor}")]

        def start(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
            headers += added
            return start_response(status, headers, exc_info) if exc_info else start_response(status, headers)

        return self._app(environ, start)
