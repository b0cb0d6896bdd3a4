"""Inventories: the hardware data of a machine, the paths that they have, and the differences of two of them.

The catalogue of paths is bounded; by it a misspelled path in a rule is noticed. A path is the keys from the top of an
inventory to a value, ``/interfaces/*/name``. ``*`` is any index of a list, and any key that is data rather than a name,
such as a MAC address. ``/extra/**`` says that nothing is known of what is below ``/extra``: the senders of inventories
choose their keys, and neither many of them nor many levels may fill the catalogue. The elements of a long list are
taken to be like the first ones.

A difference shows the disks, interfaces and devices that came, went and changed. Parts are recognized by what they
carry with them, not by their place in a list: a disk by its serial number, whatever its name is after a boot. All of it
takes linear time, whatever a machine has sent.
"""

from __future__ import annotations

import functools
import re
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeAlias

import orjson

from ironic_rules import samples
from ironic_rules.models import documents
from ironic_rules.models.documents import JSON, JSONObject, same
from ironic_rules.text import is_uuid, nearest

#: The hardware of a machine, in the format of ironic-python-agent's inventory.
Inventory: TypeAlias = JSONObject
#: Data that were sent in addition to the inventory, and data that hooks and rules have added.
PluginData: TypeAlias = JSONObject

#: A field of the node, and the key of the plugin data that is true if the field is. Inspector and Ironic have the key
#: only.
AUTO_DISCOVERED = "auto_discovered"
#: The key of stored plug-in data with what is odd in the report, a list of objects: ``path``, a JSON pointer from the
#: top of the report; ``problem``; and ``used``, what hooks and rules read in its place, or ``left_out``, if it is no
#: longer in its list. With neither, it is used as it came.
WARNINGS = "report_warnings"


#: Names of optical drives and floppy disks.
_NO_DISK = re.compile(r"/dev/(?:sr|scd|fd)[0-9]+")
#: Vendors and models of the virtual drives of BMCs; a disk of a virtual machine can be a "Virtual disk".
_MEDIUM = re.compile(r"virtual[ _-]?(?:media|cd|dvd|floppy|fd|hdisk)|(?:kvm|cimc)-mapped v|file-stor gadget", re.I)
#: Bytes of a floppy disk, whatever BMCs call it.
_FLOPPY_SIZE = 1_474_560
#: Bytes from which the agent takes a disk on USB for one of the machine, and no longer for a virtual medium
#: (``ironic_python_agent.utils._check_vmedia_device``).
_LEAST_ON_USB = 4 * 2**30


def is_virtual_medium(disk: Mapping[str, object]) -> bool:
    """Return whether an entry of ``disks`` is a medium that a BMC shows to the machine, and no disk of it.

    Agents report such a medium as a disk if the BMC shows it as a USB stick.
    """
    name, model, vendor = (str(disk.get(key) or "")[:256] for key in ("name", "model", "vendor"))
    size = disk.get("size")
    is_small = isinstance(size, int) and (size == _FLOPPY_SIZE or (disk.get("tran") == "usb" and size < _LEAST_ON_USB))
    return (_NO_DISK.fullmatch(name) is not None or is_small or _MEDIUM.search(f"{vendor} {model}") is not None)


@dataclass(frozen=True, slots=True)
class InspectionData:
    """The data of an inspection, before hooks and rules run over them."""

    inventory: Inventory
    plugin_data: PluginData = field(default_factory=dict)


class Sharing(NamedTuple):
    """MAC addresses that machines of several nodes have reported.

    :ivar of_others: those of an inventory that machines of other nodes have reported
    :ivar noted: those that are noted for the node itself
    """

    of_others: frozenset[str] = frozenset()
    noted: frozenset[str] = frozenset()


#: No address of the machine is known to be shared.
UNSHARED = Sharing()


class Report(NamedTuple):
    """The data that a ramdisk has sent, as they were stored: the part of :class:`StoredInventory` before processing.

    :ivar foreign_addresses: MAC addresses of the inventory that belonged to other nodes just now; None: not known
    :ivar sharing: those that identify no machine; known if the others are
    """

    id: int
    inventory_data: Inventory
    received_plugin_data: PluginData
    refusal: str | None
    foreign_addresses: Collection[str] | None = None
    sharing: Sharing = UNSHARED


class StoredInventory(Protocol):
    """A row of the table of inventories.

    ``received_plugin_data`` is as it was sent, ``plugin_data`` as hooks and rules have changed it. With ``refusal``
    the inspection has to fail, for that reason.
    """

    id: int
    inventory_data: Inventory
    received_plugin_data: PluginData
    plugin_data: PluginData | None
    status: str
    refusal: str | None


Steps = tuple[str, ...]

ANY_KEY = "*"
OPEN_KEY = "**"
#: Maximum number of paths that inventories add; more than that, and nothing is known of any inventory.
MAX_PATHS = 2000
#: Maximum number of paths that one inventory adds.
MAX_NEW = 100
#: Maximum number of keys of one object, and of levels.
MAX_KEYS = 64
MAX_LEVELS = 8
#: Maximum number of characters of a path.
MAX_PATH_LENGTH = 255
#: Maximum number of elements of a list, and of values of one inventory, that are looked at.
MAX_ITEMS = 256
MAX_VALUES = 20_000

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_MAC = re.compile(r"[0-9A-Fa-f]{2}(-[0-9A-Fa-f]{2})+")
_CONTAINERS = frozenset({dict, list})


class _Level(dict[str, "_Level"]):
    """The steps that are known at one place, each with those below it."""

    __slots__ = ()


class Catalogue:
    """Known paths. Immutable, shared by threads.

    :param paths: as ``/interfaces/*/name``
    """

    __slots__ = ("_top",)

    def __init__(self, paths: Iterable[str] = ()) -> None:
        self._top = _Level()
        for path in paths:
            level = self._top
            for step in filter(None, path.split("/")):
                level = level.setdefault(step, _Level())

    @property
    def is_full(self) -> bool:
        """True if nothing is known, because there were too many paths."""
        return OPEN_KEY in self._top

    def unknown_step(self, steps: Steps) -> int | None:
        """Return the number of the first step by which a path leaves the catalogue; None if it is, or may be, known."""
        level = self._top
        for number, step in enumerate(steps):
            if OPEN_KEY in level:
                return None
            below = level.get(step)
            if below is None:
                below = level.get(_generic(step))
            if below is None:
                return number
            level = below
        return None

    def nearest(self, steps: Steps) -> Steps | None:
        """Return the known path that is probably meant by an unknown one; None if none is similar."""
        number = self.unknown_step(steps)
        if number is None:
            return None
        level = self._top
        for step in steps[:number]:
            level = level[step if step in level else _generic(step)]
        sibling = nearest(steps[number], (name for name in level if name != ANY_KEY))
        if sibling is not None:
            meant = (*steps[:number], sibling, *steps[number + 1:])
            unknown = self.unknown_step(meant)
            return meant if unknown is None else meant[:max(unknown, number + 1)]
        # A name that exists at another place: close by, or only there.
        paths = [path for path in _below(self._top, ()) if path[-1] == steps[-1] != ANY_KEY
                 and path != steps[:len(path)]]
        if len(paths) > 1:
            paths = [path for path in paths if path[0] == steps[0]]
        return min(paths, key=lambda path: (-_common(path, steps), len(path), path), default=None)

    def has_all(self, inventory: Mapping[str, JSON]) -> bool:
        """Return whether every path of an inventory is known; false as well if it has too many values to look at."""
        return _Look().is_known(inventory, self._top)

    def new(self, inventory: Mapping[str, JSON]) -> list[str]:
        """Return the paths to add for an inventory, sorted, at most ``MAX_NEW``: too many are summarised by ``**``."""
        level = _Level()
        _Look().collect(inventory, level, 0)
        paths = {path if len(path) <= MAX_PATH_LENGTH else _summary(path, path.count("/", 0, MAX_PATH_LENGTH - 4) - 1)
                 for path in _differences(level, self._top, "")}
        for levels in range(MAX_LEVELS, 0, -1):
            if len(paths) <= MAX_NEW:
                break
            paths = {_summary(path, levels) for path in paths}
        return sorted(paths)


@functools.cache
def shipped_paths() -> tuple[str, ...]:
    """Return the paths of what ironic-python-agent and the inspect interfaces of this package send."""
    return tuple(samples.inventory_paths())


@functools.cache
def shipped_catalogue() -> Catalogue:
    """Return the catalogue of ``shipped_paths``."""
    return Catalogue(shipped_paths())


class _Look:
    """One look at the values of an inventory, at most ``MAX_VALUES`` of them."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = MAX_VALUES

    def is_known(self, value: Any, level: _Level) -> bool:
        if OPEN_KEY in level:
            return True
        if value.__class__ is list:
            value = value[:MAX_ITEMS]
            self._left -= len(value)
            if self._left < 0 or (value and ANY_KEY not in level):
                return False
            return all(self.is_known(item, level[ANY_KEY]) for item in value if item.__class__ in _CONTAINERS)
        self._left -= len(value)
        if self._left < 0:
            return False
        for key, item in value.items():
            below = level.get(key)
            if below is None:
                below = level.get(_generic(key))
                if below is None:
                    return False
            if item.__class__ in _CONTAINERS and not self.is_known(item, below):
                return False
        return True

    def collect(self, value: Any, level: _Level, depth: int) -> None:
        """Add the steps of ``value`` and of what is below it to ``level``."""
        if OPEN_KEY in level:
            return
        items = value.items() if value.__class__ is dict else [(ANY_KEY, item) for item in value[:MAX_ITEMS]]
        self._left -= len(items)
        if self._left < 0 or depth == MAX_LEVELS:
            _open(level)
            return
        for key, item in items:
            below = level.setdefault(_generic(key), _Level())
            if len(level) > MAX_KEYS:
                _open(level)
                return
            if item.__class__ in _CONTAINERS:
                self.collect(item, below, depth + 1)


def _is_name(key: str) -> bool:
    """Return whether a key is a name rather than data: a MAC address, a UUID, an interface's name, a number."""
    if _NAME.fullmatch(key) is None or _MAC.fullmatch(key) is not None or is_uuid(key):
        return False
    return key.isalpha() or "_" in key or not any(map(str.isdigit, key))


def _generic(step: str) -> str:
    return step if _is_name(step) else ANY_KEY


def _open(level: _Level) -> None:
    level.clear()
    level[OPEN_KEY] = _Level()


def _differences(new: _Level, old: _Level, path: str) -> Iterator[str]:
    if OPEN_KEY in old:
        return
    if len(new.keys() | old.keys()) > MAX_KEYS:
        yield f"{path}/{OPEN_KEY}"
        return
    for step, below in new.items():
        if step not in old and not below:
            yield f"{path}/{step}"
        else:
            yield from _differences(below, old.get(step, _NONE), f"{path}/{step}")


_NONE = _Level()


def _summary(path: str, levels: int) -> str:
    """Return a path of more levels as ``**`` below the first ones."""
    steps = path.split("/")
    return path if len(steps) <= levels + 1 else "/".join((*steps[:levels + 1], OPEN_KEY))


def _below(level: _Level, path: Steps) -> Iterator[Steps]:
    for step, below in level.items():
        yield (*path, step)
        yield from _below(below, (*path, step))


def _common(path: Steps, other: Steps) -> int:
    return next((number for number, (a, b) in enumerate(zip(path, other, strict=False)) if a != b),
                min(len(path), len(other)))


#: Operations of a patch; with more of them it would be larger than what it describes.
MAX_OPERATIONS = 10_000

#: The name and the value by which a part is recognized.
_Identity: TypeAlias = tuple[str, str]
_DISK = ("serial", "wwn", "by_path", "name")
_INTERFACE = ("mac_address", "name")
_COMPONENT = ("id", "name")
_PCI = ("bus",)


def difference(before: InspectionData, after: InspectionData) -> JSONObject:
    """Return the differences of two inventories, whose secrets are masked already.

    :returns: ``disks`` (by serial number, else WWN, path or name), ``interfaces`` (by MAC address), ``pci_devices`` (by
        address) and ``firmware_components`` (by ID), each with the parts ``added`` and ``removed``, and of those
        ``changed`` the ``identity`` and the changes of fields; changes of the fields of ``memory`` and of the system's
        ``firmware``; the ``patch`` (RFC 6902) of the inventory, which replaces all of it if there are more than
        ``MAX_OPERATIONS`` operations
    """
    old, new = before.inventory, after.inventory
    return {
        "disks": _parts(old.get("disks"), new.get("disks"), _DISK),
        "interfaces": _parts(old.get("interfaces"), new.get("interfaces"), _INTERFACE),
        "memory": _fields(old.get("memory"), new.get("memory")),
        "firmware": _fields(_firmware(old), _firmware(new)),
        "firmware_components": _parts(
            before.plugin_data.get("firmware"), after.plugin_data.get("firmware"), _COMPONENT),
        "pci_devices": _parts(before.plugin_data.get("pci_devices"), after.plugin_data.get("pci_devices"), _PCI),
        "patch": _patch(old, new),
    }


def _patch(old: JSONObject, new: JSONObject) -> list[JSONObject]:
    try:
        return documents.difference(old, new, most=MAX_OPERATIONS)
    except documents.TooManyOperations:
        return [{"op": "replace", "path": "", "value": new}]


def _firmware(inventory: JSONObject) -> Any:
    vendor = inventory.get("system_vendor")
    return vendor.get("firmware") if isinstance(vendor, dict) else None


def _fields(old: JSON, new: JSON) -> JSONObject:
    """Return ``{field: {"before": value, "after": value}}`` of those that differ; one that is missing has no value."""
    old, new = (value if isinstance(value, dict) else {} for value in (old, new))
    differences: JSONObject = {}
    for name in dict.fromkeys((*old, *new)):
        if name not in old:
            differences[name] = {"after": new[name]}
        elif name not in new:
            differences[name] = {"before": old[name]}
        elif not same(old[name], new[name]):
            differences[name] = {"before": old[name], "after": new[name]}
    return differences


def _parts(old: JSON, new: JSON, keys: tuple[str, ...]) -> JSONObject:
    before, after = _items(old), _items(new)
    pairs = _pairs(before, after, keys)
    changed = [{"identity": dict((_identity(item, keys),)), "changes": changes}
               for place, item in enumerate(after)
               if place in pairs and (changes := _fields(before[pairs[place]], item))]
    remaining = set(pairs.values())
    return {"added": [item for place, item in enumerate(after) if place not in pairs],
            "removed": [item for place, item in enumerate(before) if place not in remaining], "changed": changed}


def _pairs(before: list[JSONObject], after: list[JSONObject], keys: tuple[str, ...]) -> dict[int, int]:
    """Return the places before of those that were there, by their places after.

    Several may have one identity, such as the paths to a disk, or a bond and its cards: those that have not changed are
    the same ones, then those with the same name.
    """
    def named(item: JSONObject) -> tuple[_Identity, str]:
        name = item.get("name")
        return _identity(item, keys), name if isinstance(name, str) else ""

    pairs: dict[int, int] = {}
    old, new = list(range(len(before))), list(range(len(after)))
    for key in (_text, named, lambda item: _identity(item, keys)):
        places: defaultdict[Any, deque[int]] = defaultdict(deque)
        for place in old:
            places[key(before[place])].append(place)
        for place in new:
            if earlier := places.get(key(after[place])):
                pairs[place] = earlier.popleft()
        paired = set(pairs.values())
        old, new = [place for place in old if place not in paired], [place for place in new if place not in pairs]
    return pairs


def _items(value: JSON) -> list[JSONObject]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _identity(item: JSONObject, keys: Iterable[str]) -> _Identity:
    for key in keys:
        value = item.get(key)
        if isinstance(value, str) and value:
            return key, value.lower() if key == "mac_address" else value
    # Recognized only by all of it, and so never changed.
    return "", _text(item)


def _text(item: JSONObject) -> str:
    return orjson.dumps(item, option=orjson.OPT_SORT_KEYS).decode()
