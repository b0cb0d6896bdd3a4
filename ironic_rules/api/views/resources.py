"""Resources as JSON: ports, port groups, drivers, conductors, operations, steps, deploy templates and flavors.

Secrets in the arguments of steps, recognized by their keys, are masked as ``******``. Flavors are as Nova shows them.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import orjson

from ironic_rules.api import links, versions
from ironic_rules.api.views.rows import RowView
from ironic_rules.db import operations
from ironic_rules.db.projection import Row
from ironic_rules.models import secrets
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.flavors import FIELDS, Flavor
from ironic_rules.models.nodes import INTERFACES, Node
from ironic_rules.models.ports import PORT, PORT_GROUP
from ironic_rules.models.resources import OPERATION, RegisteredConductor
from ironic_rules.models.steps import DEPLOY_TEMPLATE, DeployTemplate
from ironic_rules.steps.preview import Judgement, Preview, StepWarning


class PortView(RowView):
    """The representation of ports in one version of the API with one set of fields."""

    def __init__(self, minor: int, fields: tuple[str, ...] | None) -> None:
        names = PORT.shown - PORT.hidden(minor)
        if fields is not None:
            names &= set(fields)
        super().__init__(PORT, "ports", names)

    def render(self, rows: Sequence[object], url: str) -> list[JSONObject]:
        """Return the JSON objects of ``rows``."""
        return [port for _, port in self.objects(rows, url)]


@functools.lru_cache(maxsize=256)
def port_view(minor: int, fields: tuple[str, ...] | None) -> PortView:
    """Return the view of version ``minor`` with ``fields`` (None: all)."""
    return PortView(minor, fields)


class PortgroupView(RowView):
    """The representation of port groups in one version of the API with one set of fields."""

    def __init__(self, minor: int, fields: tuple[str, ...] | None) -> None:
        names = PORT_GROUP.shown - PORT_GROUP.hidden(minor)
        if fields is not None:
            names &= set(fields)
        super().__init__(PORT_GROUP, "portgroups", names, sub_resources=("ports",) if "ports" in names else ())

    def render(self, rows: Sequence[object], url: str) -> list[JSONObject]:
        """Return the JSON objects of ``rows``."""
        return [group for _, group in self.objects(rows, url)]


@functools.lru_cache(maxsize=256)
def portgroup_view(minor: int, fields: tuple[str, ...] | None) -> PortgroupView:
    """Return the view of version ``minor`` with ``fields`` (None: all)."""
    return PortgroupView(minor, fields)


#: First minor version that shows each interface of a driver.
_INTERFACE_SINCE = {"storage": 33, "rescue": 38, "bios": 40, "firmware": versions.FIRMWARE}


@dataclass(slots=True)
class Driver:
    """One hardware type and its hosts; ``kinds`` is interface kind -> ``{"enabled": [...], "default": name}``."""

    name: str
    hosts: list[str] = field(default_factory=list)
    kinds: JSONObject = field(default_factory=dict)
    properties: dict[str, str] = field(default_factory=dict)
    #: properties of logical disks, by RAID interface; None: its conductors are older than that
    logical_disk_properties: dict[str, dict[str, str]] | None = None


def collect(conductors: Iterable[RegisteredConductor]) -> dict[str, Driver]:
    """Return the drivers of all ``conductors`` by name, in the order of the names."""
    drivers: dict[str, Driver] = {}
    for row in conductors:
        for name, description in row.hardware_types.items():
            driver = drivers.setdefault(name, Driver(name))
            driver.hosts.append(row.hostname)
            driver.properties |= description.get("properties") or {}
            if (properties := description.get("logical_disk_properties")) is not None:
                driver.logical_disk_properties = {**(driver.logical_disk_properties or {}), **properties}
            for kind in INTERFACES:
                _merge(driver.kinds, kind, description.get(kind) or {})
    return dict(sorted(drivers.items()))


def _merge(kinds: JSONObject, kind: str, offer: Mapping[str, Any]) -> None:
    merged = kinds.setdefault(kind, {"enabled": [], "default": None})
    merged["enabled"] += [name for name in offer.get("enabled", ()) if name not in merged["enabled"]]
    merged["default"] = merged["default"] or offer.get("default")


def driver(base: str, entry: Driver, minor: int, *, detail: bool) -> JSONObject:
    """Return one driver; ``detail`` adds ``default_*_interface`` and ``enabled_*_interfaces``."""
    reply: JSONObject = {
        "name": entry.name, "hosts": sorted(entry.hosts), "links": links.resource(base, "drivers", entry.name),
    }
    if minor >= versions.DRIVER_PROPERTIES_LINK:
        reply["properties"] = links.resource(base, "drivers", entry.name, "properties")
    if minor >= versions.DRIVER_DETAILS:
        reply["type"] = "dynamic"
        for kind in INTERFACES if detail else ():
            if minor >= _INTERFACE_SINCE.get(kind, versions.DRIVER_DETAILS):
                reply[f"default_{kind}_interface"] = entry.kinds[kind]["default"]
                reply[f"enabled_{kind}_interfaces"] = sorted(entry.kinds[kind]["enabled"])
    return reply


CONDUCTOR_FIELDS = ("hostname", "conductor_group", "alive", "drivers", "created_at", "updated_at")
CONDUCTOR_SUMMARY = ("hostname", "conductor_group", "alive")


def conductor(base: str, row: RegisteredConductor, alive: Container[str],
              fields: tuple[str, ...] = CONDUCTOR_FIELDS) -> JSONObject:
    """Return one conductor.

    :param alive: host names of the conductors with a recent heartbeat
    """
    values = {
        "hostname": row.hostname, "conductor_group": row.conductor_group, "alive": row.hostname in alive,
        "drivers": sorted(row.hardware_types), "created_at": row.created_at, "updated_at": row.updated_at,
    }
    return {**{name: values[name] for name in CONDUCTOR_FIELDS if name in fields},
            "links": links.resource(base, "conductors", row.hostname)}


OPERATIONS = "operations"


def operation(base: str, row: Row, counted: Mapping[str, int], failed: Sequence[Row] | None = None,
              fields: Collection[str] = OPERATION.shown) -> JSONObject:
    """Return one operation.

    :param counted: the number of its nodes in each state
    :param failed: the nodes on which it failed, with the errors; None: they are not shown
    """
    shown: JSONObject = {name: getattr(row, name) for name in OPERATION.columns if name in fields}
    rules = shown.get("filters", {}).get("rules")
    if isinstance(rules, dict):
        # Rules of a dry run may have secrets, and be sensitive; a clean-up of legacy rules has only their UUIDs.
        shown["filters"] = {**row.filters, "rules": {**rules, "added": [rule["uuid"] for rule in rules["added"]]}}
    if "progress" in fields:
        total, remaining = sum(counted.values()), counted.get(operations.LEFT, 0)
        shown["progress"] = {
            "total": total, "done": total - remaining, "changed": counted.get(operations.CHANGED, 0),
            "failed": counted.get(operations.FAILED, 0), "left": remaining}
    if failed is not None and "errors" in fields:
        shown["errors"] = [{"node": item.node_uuid, "error": item.error} for item in failed]
    return shown | {"links": links.resource(base, OPERATIONS, row.uuid)}


def operation_item(row: Row, *, details: bool) -> JSONObject:
    """Return one node of an operation.

    :param details: whether parts of actions are shown
    """
    return {"node": row.node_uuid, "status": row.status, "error": row.error, "result": _result(row, details),
            "group": row.result_hash}


def operation_group(row: Row, *, details: bool) -> JSONObject:
    """Return a result that nodes of a dry run have in common; ``details`` as of :func:`item`."""
    return {"group": row.result_hash, "number": row.number, "result": _result(row, details)}


def _result(row: Row, details: bool) -> Any:
    """Return the result of a dry run; ``would`` has the URLs of requests that actions would send."""
    return row.result if details or not isinstance(row.result, dict) else {**row.result, "would": None}


#: Fields of a node in the list of those on which a template is enabled.
JUDGED_FIELDS = ("uuid", "name", "driver", "provision_state", "supported", "problems", "warnings", "links")
JUDGED_COLUMNS = ("uuid", "name", "driver", "provision_state")


def deploy_preview(preview: Preview) -> JSONObject:
    """Return the steps that a deployment would run, in order, their problems, and the warnings about them."""
    return {"deploy_steps": _steps(preview), "deploy_templates": list(preview.templates),
            "problems": list(preview.problems), "warnings": step_warnings(preview.warnings),
            "complete": preview.complete}


def clean_preview(preview: Preview, automated: bool) -> JSONObject:
    """Return the steps that automated cleaning would run, in order, and whether it is on."""
    return {"clean_steps": _steps(preview), "automated_clean": automated, "problems": list(preview.problems),
            "complete": preview.complete}


def _steps(preview: Preview) -> list[JSONObject]:
    return [{**step.as_dict(), "args": secrets.mask(step.args), "source": step.source} for step in preview.steps]


def step_warnings(about: Sequence[StepWarning]) -> list[JSONObject]:
    """Return warnings about steps."""
    return [warning.to_wire() for warning in about]


def judged_node(base: str, row: Node, judged: Judgement, fields: Collection[str]) -> JSONObject:
    """Return one node with the reasons why it cannot run a template's steps, and the warnings about that.

    :param row: with ``NODE_COLUMNS``
    """
    values = {**{name: getattr(row, name) for name in JUDGED_COLUMNS}, "supported": not judged.problems,
              "problems": list(judged.problems), "warnings": step_warnings(judged.warnings),
              "links": links.resource(base, "nodes", row.uuid)}
    return {name: values[name] for name in JUDGED_FIELDS if name in fields or name == "links"}


_STORED = DEPLOY_TEMPLATE.where(lambda entry: entry.shown and entry.column)
#: Results for arguments of up to this many characters are cached, because lists are requested often.
_SHORT = 512


def template_columns(fields: Collection[str]) -> tuple[str, ...]:
    """Return the columns that ``templates`` needs for ``fields``."""
    return ("id", *(name for name in _STORED if name == "uuid" or name in fields))


def templates(base: str, rows: Sequence[Row], steps: Mapping[int, Sequence[tuple[str, str, str, int]]] | None,
              fields: Collection[str], collection: str) -> list[JSONObject]:
    """Return templates in the order of ``rows``.

    :param rows: with exactly ``columns(fields)``, JSON columns as text
    :param steps: by the id of the template; None to show no steps. A template without steps was deleted after ``rows``
        were read: it is omitted.
    :param collection: the last part of the collection's URL
    """
    names = template_columns(fields)[1:]
    shows_uuid, shows_extra = "uuid" in fields, "extra" in fields
    fragments = links.Fragments(base, collection)
    replies = []
    for row in rows:
        template_id, *values = row
        own_steps = None if steps is None else steps[template_id]
        if own_steps is not None and not own_steps:
            continue
        reply: JSONObject = dict(zip(names, values, strict=True))
        if shows_extra:
            reply["extra"] = orjson.Fragment(reply["extra"])
        reply["links"] = fragments.of(reply["uuid"] if shows_uuid else reply.pop("uuid"))
        if own_steps is not None:
            reply["steps"] = [
                {"interface": interface, "step": step, "args": template_arguments(args), "priority": priority}
                for interface, step, args, priority in own_steps]
        replies.append(reply)
    return replies


def template_arguments(text: str) -> Any:
    """Return the arguments of a step, stored as ``text``, as a value for orjson with every secret hidden.

    Most arguments have none and are copied unchanged, which is ten times faster than checking every value.
    """
    found_open = _is_open(text) if len(text) <= _SHORT else secrets.json_has_none(text)
    return orjson.Fragment(text) if found_open else secrets.mask(orjson.loads(text))


_is_open = functools.lru_cache(maxsize=8192)(secrets.json_has_none)


def template(base: str, row: DeployTemplate, collection: str,
             fields: Collection[str] = DEPLOY_TEMPLATE.shown) -> JSONObject:
    """Return one template."""
    shown: JSONObject = {name: getattr(row, name) for name in DEPLOY_TEMPLATE.columns if name in fields}
    if "steps" in shown:
        shown["steps"] = [{**step.to_wire(), "args": secrets.mask(step.args)} for step in row.steps]
    shown["links"] = links.resource(base, collection, row.uuid)
    return shown


def template_with_warnings(base: str, row: DeployTemplate, collection: str, about: Sequence[StepWarning]) -> JSONObject:
    """Return a template with the warnings about it; without any it has no such field."""
    return template(base, row, collection) | ({"warnings": [warning.to_wire() for warning in about]} if about else {})


#: The first minor versions of the compute API with these.
DESCRIPTION, EXTRA_SPECS, SWAP_AS_NUMBER = 55, 61, 75
#: The form of ``/v1/flavors``: that of the newest version of the compute API which is served.
FLAVOR_NEWEST = 86

#: Identifiers that need no quoting, as most of them: this finds them faster than quote().
_UNRESERVED = re.compile(r"[A-Za-z0-9._-]+")

FLAVOR_SUMMARY = ("id", "name", "description", "links")
FLAVOR_ALL = (*FIELDS, "OS-FLV-DISABLED:disabled", "extra_specs", "links")


def flavor(row: Flavor, url: str, minor: int = FLAVOR_NEWEST, fields: Collection[str] = FLAVOR_ALL) -> JSONObject:
    """Return a flavor.

    :param url: of its collection, without a slash at the end
    :param minor: of the compute API, whose form this is
    """
    shown: JSONObject = {name: getattr(row, attribute) for name, attribute in FIELDS.items() if name in fields}
    if "swap" in shown and minor < SWAP_AS_NUMBER:
        shown["swap"] = row.swap or ""
    if minor < DESCRIPTION:
        shown.pop("description", None)
    if "OS-FLV-DISABLED:disabled" in fields:
        shown["OS-FLV-DISABLED:disabled"] = False
    if "extra_specs" in fields and minor >= EXTRA_SPECS:
        shown["extra_specs"] = row.extra_specs
    if "links" in fields:
        shown["links"] = _flavor_links(url, row.flavorid)
    return shown


def flavors(rows: Iterable[Flavor], url: str, minor: int, fields: Collection[str]) -> list[JSONObject]:
    """Return flavors; parameters as of :func:`flavor`."""
    return [flavor(row, url, minor, fields) for row in rows]


def flavor_next_links(url: str) -> list[dict[str, str]]:
    """Return Nova's form of the link to the next page of a list."""
    return [{"rel": "next", "href": url}]


def _flavor_links(url: str, flavorid: str) -> list[JSONObject]:
    # Nova's bookmark has no version, and nothing is served there.
    href = f"{url}/{flavorid if _UNRESERVED.fullmatch(flavorid) else quote(flavorid, safe='')}"
    return [{"rel": "self", "href": href}, {"rel": "bookmark", "href": href}]
