"""Versions ``2.N`` of what is served below ``/compute/v2.1``: the numbers are those of Nova's compute API.

Clients select one with ``OpenStack-API-Version: compute 2.N`` or ``X-OpenStack-Nova-API-Version: 2.N``; without one
they get the oldest. Extra specs are validated from ``VALIDATION`` on, so that older clients can write what they did.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ironic_rules.api import version_text

MIN = 1
MAX = 86

DESCRIPTION = 55  # description, and PUT of a flavor
VALIDATION = 86

MIN_STRING = f"2.{MIN}"
MAX_STRING = f"2.{MAX}"
HEADER = "OpenStack-API-Version"
OLD_HEADER = "X-OpenStack-Nova-API-Version"
#: The first segment of the paths that these versions apply to.
SEGMENT = "compute"
SERVICE_TYPE = "compute"


def is_compute(environ: Mapping[str, Any]) -> bool:
    """Return whether a WSGI request is one for the compute API."""
    return str(environ.get("PATH_INFO", "")).lstrip("/").partition("/")[0] == SEGMENT


def negotiate(environ: Mapping[str, Any]) -> int:
    """Return the minor version that a WSGI request selects.

    :raises NotAcceptable: 406, malformed or not between MIN and MAX
    """
    text = version_text.of_service(environ.get("HTTP_OPENSTACK_API_VERSION") or "", (SERVICE_TYPE,))
    text = text or environ.get("HTTP_X_OPENSTACK_NOVA_API_VERSION")
    if text is None:
        return MIN
    return version_text.minor_of(text, 2, MIN, MAX)


def headers(minor: int) -> list[tuple[str, str]]:
    """Return the headers of a reply of version ``2.minor``."""
    return [(HEADER, f"{SERVICE_TYPE} 2.{minor}"), (OLD_HEADER, f"2.{minor}"), ("Vary", f"{HEADER}, {OLD_HEADER}")]
