"""``node_info``: what plug-ins written for ironic-inspector get. It works on the drafts of the inspection."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ironic_rules.legacy.ownership import MISSING, Ledger
from ironic_rules.models import addresses, documents
from ironic_rules.models.documents import JSONObject, clone, same
from ironic_rules.models.draft import NodeDraft, PortDraft
from ironic_rules.models.nodes import INTERFACE_FIELDS, NODE
from ironic_rules.models.ports import PORT
from ironic_rules.models.task import Task
from ironic_rules.rules.errors import ActionError


class Record(dict[str, Any]):
    """A copy of a node or a port; its fields are keys and attributes."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def to_dict(self) -> JSONObject:
        """Return the fields by name."""
        return dict(self)


class NodeInfo:
    """The node under inspection. Arguments ``ironic`` are for compatibility, and ignored.

    :param ledger: through which it writes; None: it is for a condition, which writes nothing
    """

    def __init__(self, task: Task, ledger: Ledger | None = None) -> None:
        self._task = task
        self._ledger = ledger

    def _writer(self) -> Ledger:
        if self._ledger is None:
            raise ActionError("a condition cannot change the node")
        return self._ledger

    @property
    def uuid(self) -> str:
        """The node's UUID."""
        return self._task.node.uuid

    def node(self, ironic: object = None) -> Record:
        """Return a copy of the node, with the changes so far."""
        values = self._task.node.read()
        return Record({name: clone(values[name]) for name in (*NODE.columns, "traits") if name in values}, id=self.uuid)

    def get_by_path(self, path: str, ironic: object = None) -> Any:
        """Return the value at a path of the node, such as ``/extra/foo``.

        :raises KeyError: there is none
        """
        tokens = documents.parse_pointer(path, relative=True)
        fields = self.node()
        try:
            return documents.get(fields, tokens)
        except documents.PointerError:
            raise KeyError(path) from None

    def replace_field(self, path: str, func: Callable[[Any], Any], **kwargs: Any) -> None:
        """Set a field to what ``func`` returns for its value; ``default`` is the value of a missing one.

        :raises KeyError: it is missing, and there is no default
        """
        try:
            old = self.get_by_path(path)
        except KeyError:
            if "default" not in kwargs:
                raise
            old = clone(kwargs["default"])
        new = func(clone(old))
        if not same(new, old):
            self._set(path, new)

    def _set(self, path: str, value: object) -> None:
        """Set a value. A list that only grew has new items, so that others in it are not the rule's."""
        writer = self._writer()
        tokens = NodeDraft.path_tokens(path)
        if tokens[0] == "traits":
            raise ActionError("traits are written by add_trait and remove_trait")
        old = writer.read(tokens)
        old = [] if old is MISSING and value else old
        if isinstance(value, list) and isinstance(old, list) and same(value[:len(old)], old) and len(tokens) > 1:
            for item in value[len(old):]:
                writer.insert(tokens, "-", item)
        else:
            writer.set_path(path, value)

    def patch(self, patches: Iterable[Mapping[str, Any]], ironic: object = None, *, reset_interfaces: bool = False,
              **kwargs: Any) -> None:
        """Apply a JSON patch of operations ``add``, ``replace`` and ``remove`` to the node.

        :param reset_interfaces: a new driver has its own default interfaces
        """
        for patch in patches:
            path = patch["path"]
            if patch["op"] == "remove":
                self._writer().remove_path(path)
            elif patch["op"] in ("add", "replace"):
                is_driver = path.strip("/") == "driver"
                if is_driver and reset_interfaces and self._task.node.driver != patch["value"]:
                    for name in INTERFACE_FIELDS:
                        self._writer().set_path(f"/{name}", None)
                self._set(path, patch["value"])
            else:
                raise ActionError("the operations of a patch are add, replace and remove")

    def update_properties(self, ironic: object = None, **props: Any) -> None:
        """Set properties of the node."""
        for name, value in props.items():
            self._set(documents.format_pointer(("properties", name)), value)

    def update_capabilities(self, ironic: object = None, **caps: Any) -> None:
        """Set capabilities of the node; None removes one."""
        for name, value in caps.items():
            self._writer().set_capability(name, value)

    def add_trait(self, trait: str, ironic: object = None) -> None:
        """Add a trait to the node."""
        self._writer().add_trait(trait)

    def remove_trait(self, trait: str, ironic: object = None) -> None:
        """Remove a trait from the node, if it has it."""
        self._writer().remove_trait(trait)

    def ports(self, ironic: object = None) -> dict[str, Record]:
        """Return copies of the node's ports by their MAC addresses."""
        return {str(port.address): Record(
            {name: clone(value) for name, value in port.read().items() if name in PORT.columns}, id=str(port.uuid))
            for port in self._task.ports}

    def patch_port(self, port: object, patches: Iterable[Mapping[str, Any]], ironic: object = None) -> None:
        """Apply a JSON patch to a port.

        :param port: one of :meth:`ports`, or a MAC address
        """
        draft = self._port(port)
        for patch in patches:
            if patch["op"] == "remove":
                self._writer().remove_port_path(draft, patch["path"])
            elif patch["op"] in ("add", "replace"):
                self._writer().set_port_path(draft, patch["path"], patch["value"])
            else:
                raise ActionError("the operations of a patch are add, replace and remove")

    def _port(self, port: object) -> PortDraft:
        address = port if isinstance(port, str) else getattr(port, "address", None)
        for draft in self._task.ports:
            if address is not None and addresses.is_mac(address) and draft.address == addresses.normalize_mac(address):
                return draft
        raise ActionError("the node has no such port")

