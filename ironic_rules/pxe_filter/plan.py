"""Decides which addresses may boot the inspection image, and the content of dnsmasq's files. Without side effects.

dnsmasq, ``--dhcp-hostsdir``: a line ``MAC`` allows a client, ``MAC,ignore`` denies it, and ``*:*:*:*:*:*`` applies to
every address without its own line. A deleted line remains in effect until dnsmasq reloads, so an address that was
written once stays in the files until then.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from ironic_rules.models import mac as mac_addresses

UNKNOWN_FILE = "unknown_hosts_filter"
WILDCARD = "*:*:*:*:*:*"
#: Instead of a node's id: the address is in the files, but no port has it (any more).
GONE = 0

_UNICAST = re.compile(r"(?!00:00:00:00:00:00)[0-9a-f][02468ace](?::[0-9a-f]{2}){5}").fullmatch
_LINE = re.compile(r"^([0-9a-f]{2}(?::[0-9a-f]{2}){5})(?:,ignore)?$", re.MULTILINE)
_SHARD = re.compile(r"macs-[0-9a-f]{4}")


class Change(NamedTuple):
    """An address that is now allowed or denied. ``node_id`` is GONE for one that no port has."""

    mac: str
    allowed: bool
    node_id: int


def usable(address: str, refused: set[str]) -> str | None:
    """Return the address normalised; None if it is not a unicast address, which is added to ``refused``."""
    if _UNICAST(address):
        return address
    try:
        return mac_addresses.normalize(address)
    except ValueError:
        refused.add(address)
        return None


def addresses_in(text: str) -> list[str]:
    """Return the unicast addresses that have a line in ``text``, the content of a file."""
    return [mac for mac in _LINE.findall(text) if _UNICAST(mac)]


def addresses_of(name: str, text: str) -> list[str]:
    """Return the addresses of a file, including the one that it is named after, even if it is empty or damaged."""
    mac = usable(name.strip(), set())
    return [*addresses_in(text), mac] if mac else addresses_in(text)


def is_ours(name: str) -> bool:
    """Return whether the name is one of a filter's file, in either layout; also with trailing white space."""
    return name == UNKNOWN_FILE or _SHARD.fullmatch(name) is not None or mac_addresses.is_mac(name.strip())


#: file -> address -> id of the node whose port has it
Files = dict[str, dict[str, int]]


class Layout:
    """How addresses are assigned to files.

    :param files: the number of files; 0: each address has its own file
    """

    def __init__(self, files: int) -> None:
        self._names = [f"macs-{number:04x}" for number in range(files)]

    def file_of(self, mac: str) -> str:
        """Return the name of the file of ``mac`` (normalised).

        Addresses that differ only in the last digit share a file: the ports of a machine often have such addresses,
        and change together.
        """
        if not self._names:
            return mac
        return self._names[binascii.crc32(mac[:16].encode()) % len(self._names)]

    def arrange(self, ports: Iterable[tuple[str, int]], refused: set[str]) -> Files:
        """Return (address, node id) pairs by file; invalid addresses are added to ``refused``."""
        if not self._names:
            usables = ((usable(address, refused), node_id) for address, node_id in ports)
            return {mac: {mac: node_id} for mac, node_id in usables if mac}
        # With a hundred thousand ports, calls take most of the time, so file_of() and part of usable() are inlined.
        count, crc32, is_unicast = len(self._names), binascii.crc32, _UNICAST
        tables: list[dict[str, int]] = [{} for _ in self._names]
        for address, node_id in ports:
            mac = address if is_unicast(address) else usable(address, refused)
            if mac:
                tables[crc32(mac[:16].encode()) % count][mac] = node_id
        return {name: table for name, table in zip(self._names, tables, strict=True) if table}


class Plan:
    """The content of the files. Methods that change it return the names of the files that may have changed."""

    def __init__(self, layout: Layout, *, deny_unknown: bool = False, discovery: bool = False) -> None:
        """Create a plan without addresses, in which no node is on inspection.

        :param deny_unknown: always deny addresses that no port has
        :param discovery: unknown machines are expected at any time
        """
        self.layout = layout
        self._deny_unknown = deny_unknown
        self._discovery = discovery
        self._files: Files = {}
        self._gone: set[str] = set()
        #: ids of the nodes on inspection
        self._inspecting: frozenset[int] = frozenset()
        #: state of addresses by messages, until the database has been read
        self._told: dict[str, bool] = {}
        self.allows_unknown = self._unknown()
        #: changes since the last call of take_changes()
        self._changes: list[Change] = []

    def __len__(self) -> int:
        return sum(map(len, self._files.values()))

    @property
    def gone(self) -> int:
        """Number of addresses in the files that no port has."""
        return len(self._gone)

    def gone_macs(self) -> list[str]:
        """Return the addresses in the files that no port has."""
        return sorted(self._gone)

    @property
    def files(self) -> set[str]:
        """Names of all files."""
        return {*self._files, UNKNOWN_FILE}

    def has_file(self, name: str) -> bool:
        """Return whether a file of that name must exist."""
        return name == UNKNOWN_FILE or name in self._files

    @property
    def inspecting(self) -> frozenset[int]:
        """Ids of the nodes on inspection."""
        return self._inspecting

    @property
    def told(self) -> dict[str, bool]:
        """State of addresses by messages, for which the database has not been read since."""
        return dict(self._told)

    def node_of(self, mac: str) -> int | None:
        """Return the id of the node whose port has the address, GONE, or None: it is not in the files."""
        return self._files.get(self.layout.file_of(mac), {}).get(mac)

    def macs(self) -> Iterator[tuple[str, int]]:
        """Yield (address, node id) of every address in the files."""
        for macs in self._files.values():
            yield from macs.items()

    def is_allowed(self, mac: str, node_id: int) -> bool:
        """Return whether an address in the files is allowed."""
        told = self._told.get(mac)
        if told is not None:
            return told
        return self.allows_unknown if node_id == GONE else node_id in self._inspecting

    def content(self, name: str) -> str:
        """Return the content that the file must have."""
        if name == UNKNOWN_FILE:
            return f"{WILDCARD}\n" if self.allows_unknown else f"{WILDCARD},ignore\n"
        inspecting, special = self._inspecting, bool(self._told or self._gone)
        lines = []
        for mac, node_id in sorted(self._files.get(name, {}).items()):
            allowed = self.is_allowed(mac, node_id) if special else node_id in inspecting
            lines.append(f"{mac}\n" if allowed else f"{mac},ignore\n")
        return "".join(lines)

    def take_changes(self) -> list[Change]:
        """Return the addresses that were allowed or denied since the last call."""
        changes, self._changes = self._changes, []
        return changes

    def remember(self, macs: Iterable[str]) -> set[str]:
        """Add addresses from existing files; until the ports are read, they count as without a port."""
        changed = set()
        for mac in macs:
            name = self.layout.file_of(mac)
            if self._files.setdefault(name, {}).setdefault(mac, GONE) == GONE:
                self._gone.add(mac)
            changed.add(name)
        return changed

    def replace(self, files: Files, inspecting: Collection[int], keep: Collection[str] = ()) -> set[str]:
        """Replace the plan by the complete state of the database.

        :param files: all ports, as returned by ``Layout.arrange``; the plan keeps and changes this object
        :param inspecting: ids of the nodes on inspection
        :param keep: addresses of messages since the database was queried
        """
        before, was_open, was_inspecting, told = self._files, self.allows_unknown, self._inspecting, self._told
        self._files, self._inspecting, self._gone = files, frozenset(inspecting), set()
        self._told = {mac: allowed for mac, allowed in told.items() if mac in keep}
        self.allows_unknown = self._unknown()
        for name, macs in before.items():
            now = files.setdefault(name, {})
            for mac, node_id in macs.items():
                if mac not in now:
                    now[mac] = GONE
                    self._gone.add(mac)
                allowed = told.get(mac, was_open if node_id == GONE else node_id in was_inspecting)
                self._compare(mac, allowed, now[mac])
        for name, macs in files.items():
            known = before.get(name, {})
            self._changes += [Change(mac, True, node_id) for mac, node_id in macs.items()
                              if node_id in self._inspecting and mac not in known]
        return self.files

    def update(self, changed: Collection[int], ports: Iterable[tuple[str, int]], inspecting: Collection[int],
               keep: Collection[str] = (), refused: set[str] | None = None) -> set[str]:
        """Update the plan by the state of some nodes in the database.

        :param changed: ids of the nodes whose ports may have changed
        :param ports: the ports of those, of the nodes whose inspection has begun or ended, and of other nodes to check
        :param inspecting: ids of all nodes on inspection
        :param keep: addresses of messages since the database was queried
        :param refused: invalid addresses are added to this set
        """
        refused = set() if refused is None else refused
        owners = {mac: node_id for address, node_id in ports if (mac := usable(address, refused))}
        touched = set(owners)
        if changed:
            touched |= {mac for mac, node_id in self.macs() if node_id in changed}
        before = {mac: self._was(mac) for mac in touched}
        # For addresses without a change in the database, messages are the latest state until all ports are read again.
        self._told = {mac: allowed for mac, allowed in self._told.items() if mac in keep or mac not in touched}
        self._inspecting = frozenset(inspecting)
        dirty = set()
        for mac in touched:
            name = self.layout.file_of(mac)
            owner = owners.get(mac, GONE)
            self._files.setdefault(name, {})[mac] = owner
            if owner == GONE:
                self._gone.add(mac)
            else:
                self._gone.discard(mac)
            dirty.add(name)
        dirty |= self._reopen()
        for mac in sorted(touched):
            self._compare(mac, before[mac], owners.get(mac, GONE))
        return dirty

    def tell(self, allow: Collection[str], deny: Collection[str]) -> set[str]:
        """Apply a message. An address in both is denied."""
        dirty = set()
        for mac, allowed in [*((mac, True) for mac in allow), *((mac, False) for mac in deny)]:
            before = self._was(mac)
            name = self.layout.file_of(mac)
            if self._files.setdefault(name, {}).setdefault(mac, GONE) == GONE:
                self._gone.add(mac)
            self._told[mac] = allowed
            self._compare(mac, before, self._files[name][mac])
            dirty.add(name)
        return dirty | self._reopen()

    def forget_told(self, keep: Collection[str] = ()) -> set[str]:
        """Replace the state from messages by that of the database, except for the addresses ``keep``."""
        outdated = [mac for mac in self._told if mac not in keep]
        before = {mac: self._was(mac) for mac in outdated}
        for mac in outdated:
            del self._told[mac]
        dirty = {self.layout.file_of(mac) for mac in outdated} | self._reopen()
        for mac in outdated:
            self._compare(mac, before[mac], self._files[self.layout.file_of(mac)][mac])
        return dirty

    def forget_gone(self) -> set[str]:
        """Remove the addresses that no port has. To be called only if dnsmasq reloads after the files are written."""
        dirty = set()
        for mac in self._gone - self._told.keys():
            name = self.layout.file_of(mac)
            del self._files[name][mac]
            dirty.add(name)
        self._gone &= self._told.keys()
        self._files = {name: macs for name, macs in self._files.items() if macs}
        return dirty

    def _was(self, mac: str) -> bool | None:
        node_id = self.node_of(mac)
        return None if node_id is None else self.is_allowed(mac, node_id)

    def _compare(self, mac: str, before: bool | None, node_id: int) -> None:
        allowed = self.is_allowed(mac, node_id)
        if before != allowed:
            self._changes.append(Change(mac, allowed, node_id))

    def _unknown(self) -> bool:
        expected = self._discovery or bool(self._inspecting) or True in self._told.values()
        return expected and not self._deny_unknown

    def _reopen(self) -> set[str]:
        """Decide again whether unknown addresses are allowed."""
        before, self.allows_unknown = self.allows_unknown, self._unknown()
        if before == self.allows_unknown:
            return set()
        return {UNKNOWN_FILE, *map(self.layout.file_of, self._gone)}
