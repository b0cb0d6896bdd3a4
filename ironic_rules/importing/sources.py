"""Documents of another cloud: read from its API in pages, or from files with what its API or its clients have shown.

Every field is kept, also one that this version does not know.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from urllib.parse import parse_qs, quote, urlsplit

import yaml

from ironic_rules.exceptions import ConfigurationError
from ironic_rules.models.documents import JSON, JSONObject
from ironic_rules.rules import strict_yaml
from ironic_rules.text import printable

_PAGE = 500
#: Maximum number of repetitions of a request after an error of the connection, and after one of these statuses.
_RETRIES = 4
_RETRIED = (429, 502, 503, 504)
_INVENTORY_SINCE = (1, 81)


class Listed(NamedTuple):
    """A list of the API: the part of its URL, the key of its reply, and the first version that has it."""

    path: str
    key: str
    since: tuple[int, int] = (1, 1)


#: The lists, by kind of object.
LISTS = {
    "chassis": Listed("/chassis?detail=true", "chassis"),
    "deploy_template": Listed("/deploy_templates?detail=true", "deploy_templates", (1, 55)),
    "runbook": Listed("/runbooks?detail=true", "runbooks", (1, 92)),
    "inspection_rule": Listed("/inspection_rules?detail=true", "inspection_rules", (1, 96)),
    "node": Listed("/nodes/detail?", "nodes"),
    "portgroup": Listed("/portgroups/detail?", "portgroups", (1, 24)),
    "port": Listed("/ports/detail?", "ports"),
    "volume_connector": Listed("/volume/connectors?detail=true", "connectors", (1, 32)),
    "volume_target": Listed("/volume/targets?detail=true", "targets", (1, 32)),
    "allocation": Listed("/allocations?", "allocations", (1, 52)),
}
#: Fields that only objects of one kind have, for lists without a key.
_TELLING = {"driver_info": "node", "pxe_enabled": "port", "standalone_ports_supported": "portgroup",
            "candidate_nodes": "allocation", "connector_id": "volume_connector", "boot_index": "volume_target",
            "actions": "inspection_rule"}


class Source(Protocol):
    """A cloud.

    :ivar name: for reports
    :ivar version: the newest version of the API that it has, e.g. (1, 115); None: not known
    """

    name: str
    version: tuple[int, int] | None

    def objects(self, kind: str) -> Sequence[JSONObject]:
        """Return all objects of one of the kinds of ``LISTS``, in the order of their creation."""

    def inventory(self, node: str) -> JSONObject | None:
        """Return ``inventory`` and ``plugin_data`` of the node with that UUID; None: it has none."""


class Cloud:
    """A running service, by its API in the newest version that it has.

    :param name: of the cloud in ``clouds.yaml``
    :raises ConfigurationError: openstacksdk is not installed, or the cloud cannot be used
    """

    def __init__(self, name: str) -> None:
        try:
            import openstack
            from keystoneauth1.exceptions import ClientException
            from openstack.exceptions import SDKException
        except ImportError as exc:
            raise ConfigurationError("--from-cloud needs openstacksdk; in the folder of the checkout, run: "
                                     "pip install '.[client]'") from exc
        self.name = f"cloud {name}"
        self._errors = (SDKException, ClientException)
        try:
            self._api: Any = openstack.connect(cloud=name).baremetal
            endpoint = self._api.get_endpoint_data()
        except self._errors as exc:
            raise self._failure(exc) from exc
        if endpoint is None or endpoint.max_microversion is None:
            raise ConfigurationError(f"{self.name}: no bare metal API replies at {printable(self._api.get_endpoint())}")
        self.version: tuple[int, int] | None = int(endpoint.max_microversion[0]), int(endpoint.max_microversion[1])

    def objects(self, kind: str) -> Sequence[JSONObject]:
        """Return all objects of a kind, from as many pages as the cloud has.

        :raises ConfigurationError: the cloud does not reply, or the list changes while it is read
        """
        listed = LISTS[kind]
        if self.version is not None and self.version < listed.since:
            return []
        by_uuid: dict[str, JSONObject] = {}
        marker = ""
        while True:
            reply = self._get(f"{listed.path}&limit={_PAGE}" + (f"&marker={quote(marker, safe='')}" if marker else ""))
            page = _list_of(reply, listed.key, self.name)
            by_uuid |= {str(item.get("uuid")): item for item in page}
            if not page or not reply.get("next"):
                return list(by_uuid.values())
            last, marker = marker, parse_qs(urlsplit(str(reply["next"])).query).get("marker", [""])[0]
            if marker in ("", last):
                raise ConfigurationError(f"{self.name}: {listed.path}: the link to the next page does not lead on")

    def inventory(self, node: str) -> JSONObject | None:
        """Return the stored inventory of a node; None: it has none.

        :raises ConfigurationError: the cloud does not reply
        """
        if self.version is not None and self.version < _INVENTORY_SINCE:
            return None
        return self._get(f"/nodes/{quote(node, safe='')}/inventory", missing=True) or None

    def _get(self, path: str, *, missing: bool = False) -> JSONObject:
        version = None if self.version is None else "{}.{}".format(*self.version)
        try:
            response = self._api.get(path.replace("?&", "?").rstrip("?"), microversion=version,
                                     connect_retries=_RETRIES, status_code_retries=_RETRIES,
                                     retriable_status_codes=list(_RETRIED))
            if missing and response.status_code == 404:
                return {}
            if response.status_code != 200:
                raise ConfigurationError(f"{self.name}: GET {path}: status {response.status_code}: "
                                         f"{printable(response.text, 512)}")
            reply = response.json()
        except (*self._errors, ValueError) as exc:
            raise self._failure(exc) from exc
        if not isinstance(reply, dict):
            raise ConfigurationError(f"{self.name}: GET {path}: the reply is no object")
        return reply

    def _failure(self, error: Exception) -> ConfigurationError:
        return ConfigurationError(f"{self.name}: {printable(error, 512)}")


class Files:
    """Files with replies of the API, or with what ``openstack baremetal … list --long -f json`` has printed.

    A file has one object whose keys are those of the API's lists, or a list of objects of one kind. ``inventories`` has
    the inventories by the UUIDs of their nodes.

    :raises ConfigurationError: a file cannot be read, is neither JSON nor YAML, or has something else
    """

    version: tuple[int, int] | None = None

    def __init__(self, names: Sequence[str]) -> None:
        self.name = f"file {names[0]}" if len(names) == 1 else f"{len(names)} files"
        self._found: dict[str, dict[str, JSONObject]] = {kind: {} for kind in LISTS}
        self._inventories: dict[str, JSONObject] = {}
        for name in names:
            self._add(name, _document(name))

    def objects(self, kind: str) -> Sequence[JSONObject]:
        """Return the objects of a kind, in the order of the files."""
        return list(self._found[kind].values())

    def inventory(self, node: str) -> JSONObject | None:
        """Return the inventory of a node; None: no file has it."""
        return self._inventories.get(node)

    def _add(self, name: str, document: object) -> None:
        if isinstance(document, list):
            document = {LISTS[_kind_of(name, document)].key: document} if document else {}
        if not isinstance(document, dict):
            raise ConfigurationError(f"{name} has neither an object nor a list")
        if document.get("next"):
            raise ConfigurationError(f"{name} has one page of a list, and 'next' names the following one: use "
                                     "--from-cloud, or request the list with a higher limit")
        kinds = {listed.key: kind for kind, listed in LISTS.items()}
        if unknown := sorted(document.keys() - kinds.keys() - {"inventories", "next"}):
            raise ConfigurationError(f"{name}: /{printable(unknown[0], 64)} is none of {', '.join(sorted(kinds))} and "
                                     "inventories")
        for key, kind in kinds.items():
            for item in _list_of(document, key, name) if key in document else ():
                self._found[kind][str(item.get("uuid"))] = item
        inventories = document.get("inventories", {})
        if not isinstance(inventories, dict) or not all(isinstance(item, dict) for item in inventories.values()):
            raise ConfigurationError(f"{name}: /inventories must be an object with an object for each node")
        self._inventories |= inventories


def _kind_of(name: str, objects: Sequence[object]) -> str:
    first = objects[0]
    if isinstance(first, dict):
        for field, kind in _TELLING.items():
            if field in first:
                return kind
        if isinstance(steps := first.get("steps"), list) and steps and isinstance(steps[0], dict):
            return "runbook" if "order" in steps[0] else "deploy_template"
    raise ConfigurationError(f"{name}: /0 is not known as an object of any kind: print it with --long, or put the list "
                             f"below one of {', '.join(sorted(listed.key for listed in LISTS.values()))}")


def _list_of(document: Mapping[str, JSON], key: str, name: str) -> list[JSONObject]:
    items = document.get(key)
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise ConfigurationError(f"{name}: /{key} must be a list of objects")
    for index, item in enumerate(items):
        if not isinstance(item.get("uuid"), str):
            raise ConfigurationError(f"{name}: /{key}/{index}/uuid must be a text")
    return items


def _document(name: str) -> object:
    try:
        text = Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        raise ConfigurationError(f"{name} cannot be read: {exc}") from exc
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as exc:
        if name.endswith(".json"):
            raise ConfigurationError(f"{name} is not JSON: {printable(exc)}") from exc
    try:
        return strict_yaml.load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as exc:
        raise ConfigurationError(f"{name} is neither JSON nor YAML: {printable(exc)}") from exc


def in_parts(objects: Sequence[JSONObject], size: int = _PAGE) -> Iterator[Sequence[JSONObject]]:
    """Yield the objects in parts of at most ``size``."""
    for start in range(0, len(objects), size):
        yield objects[start:start + size]
