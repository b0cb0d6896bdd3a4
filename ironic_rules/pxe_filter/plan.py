"""Decides which addresses may boot the inspection image. Without side effects.

Addresses are arranged in groups, which are written as a whole: the files of a hostsdir, and of other targets as well.
Lines that a target wrote may remain in effect until its server reloads (as with dnsmasq), so an address that was in a
group stays there until then.

A client that a DHCP server does not know by a MAC address has a key beside the addresses: ``id:`` and the octets of its
identifier in hexadecimal, which is also how dnsmasq writes it. DHCPv4 clients on InfiniBand have no hardware address in
their requests (RFC 4390), only a client identifier (option 61); DHCPv6 clients have a DUID.
"""

from __future__ import annotations

import binascii
import collections
import itertools
import re
import struct
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, overload

from ironic_rules.models import addresses

#: Regular expression of a key.
FORM = r"id:[0-9a-f]{2}(?::[0-9a-f]{2}){1,254}"
_KEY = re.compile(FORM).fullmatch
#: Identifiers that consist of an Ethernet address: a DUID-LL (RFC 8415, 11.4), and one of RFC 2132, 9.14.
_OF_ADDRESS = re.compile(r"id:(?:00:03:00:01|01)(?::[0-9a-f]{2}){6}").fullmatch


def is_one(key: str) -> bool:
    """Return whether the text is a key of an identifier, not an address."""
    return key[:3] == "id:" and _KEY(key) is not None


def key_of(identifier: object) -> str | None:
    """Return the key of an identifier, from 2 to 255 octets in hexadecimal; None if it is not one.

    Colons or hyphens may separate the octets. One that consists of a MAC address is refused: a port with that address
    tells such a client. Otherwise, a machine that reports the address of another one would decide about that one.
    """
    if not isinstance(identifier, str) or len(identifier) > 3 * 255:
        return None
    digits = identifier.lower().replace("-", ":")
    if ":" not in digits:
        digits = ":".join(digits[start:start + 2] for start in range(0, len(digits), 2))
    key = f"id:{digits}"
    return key if is_one(key) and _OF_ADDRESS(key) is None else None


def octets(key: str) -> bytes:
    """Return the identifier of a key."""
    return bytes.fromhex(key[3:].replace(":", ""))


def keys(pairs: Iterable[tuple[object, int]], refused: set[str]) -> Iterator[tuple[str, int]]:
    """Yield (key, node id) of every valid identifier; the others are added to ``refused``, after ``id:``."""
    for identifier, node_id in pairs:
        key = key_of(identifier)
        if key is None:
            refused.add(f"id:{identifier}")
        else:
            yield key, node_id


#: Keys that ports of several nodes have, with the ids of these. The node with the lowest id decides: a machine that
#: reports the identifier of another one, and is enrolled after it, does not.
Rivals = dict[str, frozenset[int]]


def claims(pairs: Iterable[tuple[str, int]]) -> Rivals:
    """Return the ids of the nodes of each key, by key in ascending order."""
    nodes: collections.defaultdict[str, set[int]] = collections.defaultdict(set)
    for key, node_id in pairs:
        nodes[key].add(node_id)
    return {key: frozenset(nodes[key]) for key in sorted(nodes)}


UNKNOWN_FILE = "unknown_hosts_filter"
WILDCARD = "*:*:*:*:*:*"
#: Instead of a node's id: the address is in the files, but no port has it (any more).
GONE = 0

#: Maximum number of changes that are remembered for the log.
_MAX_CHANGES = 100_000

_ALL_ZERO = b"00:00:00:00:00:00"
#: The second digit of unicast addresses.
_EVEN = b"02468ace"
_UNICAST = re.compile(r"(?!00:00:00:00:00:00)[0-9a-f][02468ace](?::[0-9a-f]{2}){5}").fullmatch

#: file -> address -> id of the node whose port has it
Files = dict[str, dict[str, int]]
#: Addresses, and for each the id of the node whose port has it: of many ports in less time and memory than pairs.
Ports = tuple[Sequence[str], Sequence[int]]


class Change(NamedTuple):
    """An address that is now allowed or denied. ``node_id`` is GONE for one that no port has."""

    mac: str
    allowed: bool
    node_id: int


def usable(address: str, refused: set[str]) -> str | None:
    """Return the address normalized; None if it is not a unicast address, which is added to ``refused``."""
    if _UNICAST(address):
        return address
    try:
        return addresses.normalize_mac(address)
    except ValueError:
        refused.add(address)
        return None


def normalized(addresses: Sequence[str], node_ids: Sequence[int], refused: set[str]) -> Ports:
    """Return ports with their addresses normalized, without those of invalid ones, which are added to ``refused``."""
    if _are_normal(addresses):
        return addresses, node_ids
    pairs = [(mac, node_id) for address, node_id in zip(addresses, node_ids, strict=True)
             if (mac := usable(address, refused))]
    return [mac for mac, _ in pairs], [node_id for _, node_id in pairs]


def _are_normal(addresses: Sequence[str]) -> bool:
    """Return whether all of them are unicast addresses in the normal form, with few operations on all of them at once.

    The database of the service has no others, and to look at each of them took longer than to read it.
    """
    count = len(addresses)
    try:
        lines = "\n".join([*addresses, ""]).encode("ascii")
    except UnicodeEncodeError:
        return False
    # As many separators as in the normal form, all where they belong, and digits everywhere else.
    return (len(lines) == 18 * count and lines[2::3] == b":::::\n" * count and lines.count(b"\n") == count
            and lines.count(b":") == 5 * count and not lines.translate(None, b"0123456789abcdef:\n")
            and not lines[1::18].translate(None, _EVEN) and _ALL_ZERO not in lines)


def _beginnings(macs: Sequence[str]) -> Sequence[bytes]:
    """Return all but the last digit of each MAC address."""
    return struct.unpack("16s2x" * len(macs), "\n".join([*macs, ""]).encode())


class Verdicts(Sequence[tuple[str, bool]]):
    """(address, whether it is allowed) of every address of a file, in ascending order.

    :param macs: the addresses, in that order
    :param allowed: those that are allowed
    """

    __slots__ = ("allowed", "macs")

    def __init__(self, macs: list[str], allowed: Collection[str]) -> None:
        self.macs = macs
        self.allowed = frozenset(allowed)

    def __len__(self) -> int:
        return len(self.macs)

    def __iter__(self) -> Iterator[tuple[str, bool]]:
        return zip(self.macs, map(self.allowed.__contains__, self.macs), strict=True)

    @overload
    def __getitem__(self, index: int) -> tuple[str, bool]: ...

    @overload
    def __getitem__(self, index: slice) -> Verdicts: ...

    def __getitem__(self, index: int | slice) -> tuple[str, bool] | Verdicts:
        if isinstance(index, slice):
            macs = self.macs[index]
            return Verdicts(macs, self.allowed.intersection(macs))
        return self.macs[index], self.macs[index] in self.allowed

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(list(self))


class Layout:
    """The assignment of addresses to files.

    :param files: the number of files; 0: each address has its own file
    """

    def __init__(self, files: int) -> None:
        self._names = [f"macs-{number:04x}" for number in range(files)]

    def file_of(self, mac: str) -> str:
        """Return the name of the file of ``mac`` (normalized).

        Addresses that differ only in the last digit share a file: the ports of a machine often have such addresses,
        and change together. An identifier never has its own file: it may be longer than a name can be.
        """
        if is_one(mac):
            number = binascii.crc32(mac.encode())
            return self._names[number % len(self._names)] if self._names else f"macs-{number & 0xffff:04x}"
        if not self._names:
            return mac
        return self._names[binascii.crc32(mac[:16].encode()) % len(self._names)]

    def files_of(self, macs: Sequence[str]) -> Sequence[str]:
        """Return the names of the files of many MAC addresses, in their order: the same as ``file_of``, at once."""
        names, count = self._names, len(self._names)
        if not names or not macs:
            return macs
        return [names[number % count] for number in map(binascii.crc32, _beginnings(macs))]


class Comparison:
    """Finds the files whose addresses are not those of the database; only these are kept in memory.

    All ports are given to ``take`` in parts, then ``needs_again`` is asked; if it says so, all of them once more.

    :param tables: the files of the plan
    :param refused: invalid addresses are added to this set
    """

    def __init__(self, layout: Layout, tables: Files, refused: set[str]) -> None:
        self._layout = layout
        self._tables = tables
        self._refused = refused
        self._found: collections.defaultdict[str, dict[str, int]] = collections.defaultdict(dict)
        self._same: dict[str, int] = {}
        #: files of which only a part was kept; None: in the first round
        self._partly: set[str] | None = None

    def take(self, ports: Ports, keys: Iterable[tuple[str, int]] = ()) -> None:
        """Take over ports, and (identifier, node id) pairs, which have been checked."""
        macs, node_ids = normalized(*ports, self._refused)
        named = zip(self._layout.files_of(macs), macs, node_ids, strict=True)
        self._take(itertools.chain(named, ((self._layout.file_of(key), key, node_id) for key, node_id in keys))
                   if keys else named)

    def _take(self, named: Iterable[tuple[str, str, int]]) -> None:
        different, same, tables = self._found, self._same, self._tables
        if self._partly is not None:
            for name, mac, node_id in named if self._partly else ():
                if name in self._partly:
                    different[name][mac] = node_id
            return
        for name, mac, node_id in named:
            table = tables.get(name)
            if table is not None and table.get(mac) == node_id:
                same[name] = same.get(name, 0) + 1
            else:
                different[name][mac] = node_id

    def needs_again(self) -> bool:
        """Return whether all ports must be given again, because files have lost or gained addresses."""
        different, same = self._found, self._same
        partly = {name for name in different if name in same}
        for name in self._tables.keys() - partly:
            expected = len(self._tables[name])
            if same.get(name, 0) == expected:
                continue
            expected -= sum(node_id == GONE for node_id in list(self._tables[name].values()))
            if name in same and same[name] != expected:
                partly.add(name)
            elif name not in same and name not in different and expected:
                different[name] = {}
        for name in partly:
            different[name] = {}
        self._partly = partly
        return bool(partly)

    @property
    def different(self) -> Files:
        """The files that are different, complete with what the database says."""
        return dict(self._found)


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
        #: addresses by id of their node: one, as with most nodes, takes less memory than a tuple
        self._by_node: dict[int, str | tuple[str, ...]] = {}
        #: names of files whose addresses are not in it yet
        self._unindexed: list[str] = []
        #: ids of the nodes whose addresses are allowed
        self._inspecting: frozenset[int] = frozenset()
        #: whether one of them is on inspection, so that unknown machines are expected
        self._expects_unknown = False
        #: keys that ports of several nodes have
        self.rivals: Rivals = {}
        #: state of addresses by messages, until the database has been read
        self._told: dict[str, bool] = {}
        self.allows_unknown = self._unknown()
        #: the latest changes since the last call of take_changes(); nothing calls it while the database is unavailable
        self._changes: collections.deque[Change] = collections.deque(maxlen=_MAX_CHANGES)
        #: the same addresses, since the last call of take_flips(), and those without a port with ``allows_unknown``
        self._flips: set[str] = set()

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
        """Ids of the nodes whose addresses are allowed: those on inspection, and perhaps those in other procedures."""
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
        verdict = self._told.get(mac)
        if verdict is not None:
            return verdict
        return self.allows_unknown if node_id == GONE else node_id in self._inspecting

    def verdict(self, mac: str) -> bool | None:
        """Return whether the address is allowed; None: it is not in the files."""
        node_id = self.node_of(mac)
        return None if node_id is None else self.is_allowed(mac, node_id)

    def verdicts(self, name: str) -> Verdicts:
        """Return (address, whether it is allowed) of every address of a file, in ascending order."""
        owners = self._files.get(name, {})
        if self._told or self._gone:
            allowed = [mac for mac, node_id in owners.items() if self.is_allowed(mac, node_id)]
        else:
            allowed = list(self._allowed_of(owners))
        return Verdicts(sorted(owners), allowed)

    def _allowed_of(self, owners: Mapping[str, int]) -> Iterator[str]:
        """Return the addresses whose nodes are on inspection."""
        return itertools.compress(owners, map(self._inspecting.__contains__, owners.values()))

    def take_changes(self) -> list[Change]:
        """Return the addresses that were allowed or denied since the last call."""
        changes = list(self._changes)
        self._changes.clear()
        return changes

    def take_flips(self) -> set[str]:
        """Return the addresses whose verdict has changed since the last call.

        After ``tell`` and ``update``, nothing else has changed in the files whose names these return.
        """
        flips, self._flips = self._flips, set()
        return flips

    def remember(self, macs: Iterable[str]) -> set[str]:
        """Add addresses from existing files; until the ports are read, they count as without a port."""
        return {self._known(mac) for mac in macs}

    def _known(self, mac: str) -> str:
        """Add an address to its file, unless it is there; return the name of the file."""
        name = self.layout.file_of(mac)
        if self._files.setdefault(name, {}).setdefault(mac, GONE) == GONE:
            self._gone.add(mac)
        return name

    def compare(self, refused: set[str]) -> Comparison:
        """Return a comparison with all ports of the database, to which they have to be given.

        The plan is not changed; messages may be applied to it during the comparison.

        :param refused: invalid addresses are added to this set
        """
        return Comparison(self.layout, dict(self._files), refused)

    def contradicted(self) -> set[int]:
        """Return the ids of nodes that the database allowed, and of which a message has denied an address since."""
        owners = {self.node_of(mac) for mac, allowed in self._told.items() if not allowed}
        return {node_id for node_id in owners if node_id is not None and node_id in self._inspecting}

    def begin(self, inspecting: Collection[int], keep: Collection[str] = (), *,
              on_inspection: int | None = None) -> set[str]:
        """Take over which nodes are allowed, and forget messages; ports follow with ``take_over``.

        :param on_inspection: how many of them are on inspection; by default all
        """
        outdated = [mac for mac in self._told if mac not in keep]
        touched = {*outdated, *(mac for node_id in self._inspecting ^ set(inspecting) for mac in self.macs_of(node_id))}
        before = {mac: self.verdict(mac) for mac in touched}
        for mac in outdated:
            del self._told[mac]
        self._allow(inspecting, on_inspection)
        dirty = {self.layout.file_of(mac) for mac in touched} | self._reopen()
        for mac in sorted(touched):
            self._compare(mac, before[mac], self.node_of(mac) or GONE)
        return dirty

    def take_over(self, files: Files, *, logged: bool = True) -> set[str]:
        """Replace the addresses of these files by those of the database; addresses without a port stay as GONE.

        :param logged: whether addresses of new files that are allowed are remembered for the log
        """
        dirty = set()
        for name, now in files.items():
            before = self._files.get(name, {})
            if not before:
                if now:
                    self._files[name] = now
                    self._unindexed.append(name)
                    dirty.add(name)
                    for mac in self._allowed_of(now) if logged else ():
                        self._compare(mac, None, now[mac])
                continue
            for mac in before.keys() - now.keys():
                now[mac] = GONE
            moved = {mac: node_id for mac, node_id in now.items() if before.get(mac) != node_id}
            if not moved:
                continue
            was = {mac: self.verdict(mac) for mac in moved if mac in before}
            self.index(len(self._unindexed))  # what follows keeps the index up to date
            self._files[name] = now
            for mac, node_id in moved.items():
                self._belongs(mac, before.get(mac, GONE), node_id)
                # Only new addresses that are allowed are worth a line in the log.
                if mac in before or node_id in self._inspecting:
                    self._compare(mac, was.get(mac), node_id)
            dirty.add(name)
        return dirty

    def index(self, number: int) -> bool:
        """Make the addresses of some new files known by their nodes; return whether there are more such files.

        Only the next reading needs that, and the first one is not to wait for it. The rest is done when it is needed.
        """
        for _ in range(min(number, len(self._unindexed))):
            self._index(self._files.get(self._unindexed.pop(), {}))
        return bool(self._unindexed)

    def _index(self, macs: dict[str, int]) -> None:
        by_node = self._by_node
        # The ports of a node mostly follow each other.
        for node_id, group in itertools.groupby(macs, macs.__getitem__):
            if node_id == GONE:
                continue
            mine = tuple(group)
            earlier = by_node.get(node_id)
            if earlier is not None:
                by_node[node_id] = (*((earlier,) if isinstance(earlier, str) else earlier), *mine)
            else:
                by_node[node_id] = mine if len(mine) > 1 else mine[0]

    def macs_of(self, node_id: int) -> tuple[str, ...]:
        """Return the addresses of a node's ports."""
        if self._unindexed:
            self.index(len(self._unindexed))
        macs = self._by_node.get(node_id, ())
        return (macs,) if isinstance(macs, str) else macs

    def _belongs(self, mac: str, before: int, now: int) -> None:
        """Keep the index and the addresses without a port up to date, when an address changes its owner."""
        if before != GONE:
            rest = tuple(other for other in self.macs_of(before) if other != mac)
            if rest:
                self._by_node[before] = rest
            else:
                self._by_node.pop(before, None)
        if now == GONE:
            self._gone.add(mac)
            return
        self._gone.discard(mac)
        siblings = self.macs_of(now)
        self._by_node[now] = (*siblings, mac) if siblings else mac

    def update(self, changed: Collection[int], ports: Iterable[tuple[str, int]], inspecting: Collection[int],
               keep: Collection[str] = (), refused: set[str] | None = None, again: Collection[str] = (), *,
               on_inspection: int | None = None) -> set[str]:
        """Update the plan by the state of some nodes in the database.

        :param changed: ids of the nodes whose ports may have changed
        :param ports: the ports of those, of the nodes whose inspection has begun or ended, and of other nodes to check
        :param inspecting: ids of all nodes whose addresses are allowed
        :param keep: addresses of messages since the database was queried
        :param refused: invalid addresses are added to this set
        :param again: addresses of earlier messages; for those without a port, the database is newer
        :param on_inspection: how many nodes are on inspection; by default all whose addresses are allowed
        """
        refused = set() if refused is None else refused
        pairs = list(ports)
        owners = {mac: node_id for address, node_id in pairs
                  if not is_one(address) and (mac := usable(address, refused))}
        owners |= self._claim(changed, pairs)
        touched = set(owners)
        touched.update(mac for node_id in changed for mac in self.macs_of(node_id))
        touched.update(mac for mac in again if self.node_of(mac) == GONE)
        names = {mac: self.layout.file_of(mac) for mac in touched}
        before: dict[str, bool | None] = {}
        moved = []
        for mac, name in names.items():
            node_id = self._files.get(name, {}).get(mac)
            before[mac] = None if node_id is None else self.is_allowed(mac, node_id)
            if node_id != owners.get(mac, GONE):
                moved.append((mac, node_id or GONE))
        # For addresses without a change in the database, messages are the latest state until all ports are read again.
        self._told = {mac: allowed for mac, allowed in self._told.items() if mac in keep or mac not in touched}
        self._allow(inspecting, on_inspection)
        for mac, node_id in moved:
            owner = owners.get(mac, GONE)
            self._belongs(mac, node_id, owner)
            self._files.setdefault(names[mac], {})[mac] = owner
        dirty = {*names.values(), *self._reopen()}
        for mac in sorted(touched):
            self._compare(mac, before[mac], owners.get(mac, GONE))
        return dirty

    def _claim(self, changed: Collection[int], pairs: Collection[tuple[str, int]]) -> dict[str, int]:
        """Note which nodes have identifiers, and return the node that each of them belongs to.

        :param pairs: all addresses and identifiers of the changed nodes, and of others
        """
        read = {*changed, *(node_id for _, node_id in pairs)}
        now = claims(pair for pair in pairs if is_one(pair[0]))
        affected = {*now, *(key for key, node_ids in self.rivals.items() if not read.isdisjoint(node_ids))}
        owners = {}
        for key in affected:
            before = self.rivals.get(key) or {self.node_of(key) or GONE} - {GONE}
            node_ids = frozenset({*(before - read), *now.get(key, ())})
            if len(node_ids) > 1:
                self.rivals[key] = node_ids
            else:
                self.rivals.pop(key, None)
            if node_ids:
                owners[key] = min(node_ids)
        return owners

    def tell(self, allow: Collection[str], deny: Collection[str]) -> set[str]:
        """Apply a message. An address in both is denied."""
        dirty = set()
        for mac, allowed in [*((mac, True) for mac in allow), *((mac, False) for mac in deny)]:
            before = self.verdict(mac)
            name = self._known(mac)
            self._told[mac] = allowed
            self._compare(mac, before, self._files[name][mac])
            dirty.add(name)
        return dirty | self._reopen()

    def forget_told(self, keep: Collection[str] = ()) -> set[str]:
        """Replace the state from messages by that of the database, except for the addresses ``keep``."""
        outdated = [mac for mac in self._told if mac not in keep]
        before = {mac: self.verdict(mac) for mac in outdated}
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

    def _compare(self, mac: str, before: bool | None, node_id: int) -> None:
        allowed = self.is_allowed(mac, node_id)
        if before != allowed:
            self._changes.append(Change(mac, allowed, node_id))
            self._flips.add(mac)

    def _allow(self, node_ids: Collection[int], on_inspection: int | None) -> None:
        self._inspecting = frozenset(node_ids)
        self._expects_unknown = bool(self._inspecting if on_inspection is None else on_inspection)

    def _unknown(self) -> bool:
        expected = self._discovery or self._expects_unknown or True in self._told.values()
        return expected and not self._deny_unknown

    def _reopen(self) -> set[str]:
        """Decide again whether unknown addresses are allowed."""
        before, self.allows_unknown = self.allows_unknown, self._unknown()
        if before == self.allows_unknown:
            return set()
        self._flips |= self._gone
        return {UNKNOWN_FILE, *map(self.layout.file_of, self._gone)}
