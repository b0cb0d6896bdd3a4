"""Flavors -> JSON, as Nova shows them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from urllib.parse import quote

from ironic_rules.models.documents import JSONObject
from ironic_rules.models.flavors import FIELDS, Flavor

#: The first minor versions of the compute API with these.
DESCRIPTION, EXTRA_SPECS, SWAP_AS_NUMBER = 55, 61, 75
#: The form of ``/v1/flavors``: that of the newest version of the compute API which is served.
NEWEST = 86

#: Identifiers that need no quoting, as most of them: quote() takes ten times as long to find that.
_UNRESERVED = re.compile(r"[A-Za-z0-9._-]+")

SUMMARY = ("id", "name", "description", "links")
ALL = (*FIELDS, "OS-FLV-DISABLED:disabled", "extra_specs", "links")


def flavor(found: Flavor, url: str, minor: int = NEWEST, fields: Collection[str] = ALL) -> JSONObject:
    """Return a flavor.

    :param url: of its collection, without a slash at the end
    :param minor: of the compute API, whose form this is
    """
    shown: JSONObject = {name: getattr(found, attribute) for name, attribute in FIELDS.items() if name in fields}
    if "swap" in shown and minor < SWAP_AS_NUMBER:
        shown["swap"] = found.swap or ""
    if minor < DESCRIPTION:
        shown.pop("description", None)
    if "OS-FLV-DISABLED:disabled" in fields:
        shown["OS-FLV-DISABLED:disabled"] = False
    if "extra_specs" in fields and minor >= EXTRA_SPECS:
        shown["extra_specs"] = found.extra_specs
    if "links" in fields:
        shown["links"] = _links(url, found.flavorid)
    return shown


def flavors(found: Iterable[Flavor], url: str, minor: int, fields: Collection[str]) -> list[JSONObject]:
    """Return flavors; parameters as of :func:`flavor`."""
    return [flavor(each, url, minor, fields) for each in found]


def next_links(url: str) -> list[dict[str, str]]:
    """Return Nova's form of the link to the next page of a list."""
    return [{"rel": "next", "href": url}]


def _links(url: str, flavorid: str) -> list[JSONObject]:
    # Nova's bookmark has no version, and nothing is served there.
    href = f"{url}/{flavorid if _UNRESERVED.fullmatch(flavorid) else quote(flavorid, safe='')}"
    return [{"rel": "self", "href": href}, {"rel": "bookmark", "href": href}]
