"""Versions that clients write: ``MAJOR.MINOR``, of which a service supports the minor ones in a range."""

from __future__ import annotations

import re
from collections.abc import Collection

from ironic_rules.exceptions import NotAcceptable

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


def of_service(header: str, names: Collection[str]) -> str | None:
    """Return the version in ``OpenStack-API-Version`` that is for a service, which has one of these names."""
    for entry in header.split(","):
        service, _, version = entry.strip().partition(" ")
        if service.lower() in names:
            return version
    return None
