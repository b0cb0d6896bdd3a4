"""The target ``kea``: the host database of Kea servers, which they query for every request.

The reservations are in the table that ``kea-admin db-init`` creates, global ones (subnet 0) for DHCPv4 and DHCPv6 at
once. Rows of the filter have a ``user_context`` of its own, or of a former name of it; others are neither changed nor
removed.

With the closed policy every allowed address has a reservation, and Kea ignores clients without one. With the open
policy every denied address has one with the class ``DROP``. Whether clients without a reservation are served cannot be
said in that database; if they are not, then no address is allowed at all (no node is on inspection), so the servers are
made to stop serving with the command ``dhcp-disable``, over the control socket of a local server (a stream socket in
the file system, JSON). A server that was restarted serves, and is told again. The same is done while a denial cannot be
written.

A change is in effect when it is committed, also for several servers that share the database. Several filters may write
into one: they write the same, or have different names. Reservations under a former name of the target count as its own,
and are replaced with the group of their address, so that none is missing at any time.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Collection, Iterable, Iterator, Sequence

import sqlalchemy as sa
from oslo_log import log as logging
from sqlalchemy.dialects import postgresql

from ironic_rules.conf.pxe_filter import GROUP, group_of
from ironic_rules.db import deadlines
from ironic_rules.models import json_text
from ironic_rules.models.documents import JSONObject
from ironic_rules.pxe_filter import plan
from ironic_rules.pxe_filter.settings import UNNAMED, TargetSettings
from ironic_rules.pxe_filter.targets.base import Batch, Found, InForce, Outcome, Target
from ironic_rules.text import enumeration, printable

#: Identifiers by which Kea finds a client's reservation, and their numbers in ``host_identifier_type``.
IDENTIFIERS = {"hw-address": 0, "duid": 1, "client-id": 3}
#: The class of a client whose packets Kea ignores.
DROP = "DROP"
_GLOBAL = 0
#: Seconds after which a statement is given up.
_LIMIT_S = 20
_DUID_LL = b"\0\3\0\1"
_CHUNK = 500

_HOSTS = sa.table("hosts", *(sa.column(name) for name in (
    "dhcp_identifier", "dhcp_identifier_type", "dhcp4_subnet_id", "dhcp6_subnet_id", "dhcp4_client_classes",
    "dhcp6_client_classes", "user_context")))


def identifier(key: str, kind: str) -> bytes | None:
    """Return the identifier of a client with that address, or of that key; None if it has none of that kind.

    The DUID of an address is the one of RFC 8415 §11.4, for Ethernet. Other DUIDs, and client identifiers, are keys.
    """
    if plan.is_one(key):
        return None if kind == "hw-address" else plan.octets(key)
    if kind == "client-id":
        return None
    address = bytes.fromhex(key.replace(":", ""))
    return address if kind == "hw-address" else _DUID_LL + address


def _context(owner: str) -> str:
    return json.dumps({"ironic-pxe-filter": owner})


def _key(raw: bytes, kind: int) -> str | None:
    octets = bytes(raw)
    if kind == IDENTIFIERS["duid"] and octets[:4] == _DUID_LL and len(octets) == 10:
        return octets[4:].hex(":")
    if kind == IDENTIFIERS["hw-address"]:
        return octets.hex(":") if len(octets) == 6 else None
    return plan.key_of(octets.hex(":"))


class Hosts:
    """The filter's reservations.

    :param url: of the database, for SQLAlchemy; MySQL, MariaDB or PostgreSQL
    :param kinds: the identifiers that each address gets a reservation for
    :param owner: name in the ``user_context`` of the rows, to tell those of several filters
    :param former: names that it had before
    :raises sa.exc.SQLAlchemyError: every method, if the database is unavailable or refuses something
    """

    def __init__(self, url: str, kinds: Sequence[str], owner: str, former: Sequence[str] = ()) -> None:
        self._kinds = {kind: IDENTIFIERS[kind] for kind in kinds}
        self._context = _context(owner)
        self._contexts = [self._context, *map(_context, former)]
        self.former = frozenset(former)
        parsed = sa.make_url(url)
        mysql = parsed.get_backend_name() == "mysql"
        arguments: JSONObject = {"connect_timeout": 5}
        # Nothing waits without limit for a database that does not answer, or for a lock.
        arguments |= ({"read_timeout": _LIMIT_S, "write_timeout": _LIMIT_S} if mysql else
                      {"options": f"-c statement_timeout={1000 * _LIMIT_S} -c synchronous_commit=on",
                       "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3,
                       "tcp_user_timeout": 1000 * _LIMIT_S})
        self._engine = sa.create_engine(parsed, pool_size=1, max_overflow=1, pool_recycle=3600,
                                        connect_args=arguments, hide_parameters=True)
        if not mysql:  # its driver waits for a server that is stopped as long as that is
            deadlines.Watchdog(_LIMIT_S + 1, setting="[pxe_filter]kea_connection").watch(self._engine)
        # Another filter may have added the same rows, and the operator a reservation of the same client.
        insert: sa.Insert = (sa.insert(_HOSTS).prefix_with("IGNORE") if mysql else
                             postgresql.insert(_HOSTS).on_conflict_do_nothing())
        self._insert = insert.execution_options(preserve_rowcount=True)

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()

    def names(self) -> dict[str, int]:
        """Return the number of reservations of filters with other names, by name."""
        start, end = _context("")[:-2], _context("")[-2:]
        context = _HOSTS.c.user_context
        query = sa.select(context, sa.func.count()).where(
            context.startswith(start, autoescape=True), context != self._context).group_by(context)
        with self._engine.connect() as conn:
            self._check(conn)
            return {text.removeprefix(start).removesuffix(end): number for text, number in conn.execute(query)}

    def read(self) -> Iterator[tuple[str, bool | None, bool]]:
        """Yield (address, whether it is dropped, whether by a former name) of every address with rows of the filter.

        None instead: its rows are incomplete, contradictory, or of other kinds than the configured ones.
        """
        verdicts_by_mac: dict[str, list[bool | None]] = {}
        former = set()
        query = sa.select(_HOSTS.c.dhcp_identifier, _HOSTS.c.dhcp_identifier_type, _HOSTS.c.dhcp4_client_classes,
                          _HOSTS.c.dhcp6_client_classes, _HOSTS.c.user_context != self._context).where(
            _HOSTS.c.user_context.in_(self._contexts))
        with self._engine.connect() as conn:
            self._check(conn)
            for raw, kind, first, second, is_former in conn.execute(query):
                mac = _key(raw, kind)
                if mac is not None:
                    is_right = first == second and kind in self._kinds.values()
                    verdicts_by_mac.setdefault(mac, []).append(first == DROP if is_right else None)
                    if is_former:
                        former.add(mac)
        for mac, verdicts in verdicts_by_mac.items():
            is_right = len(verdicts) == len(self._of(mac)) and len(set(verdicts)) == 1
            yield mac, verdicts[0] if is_right else None, mac in former

    def _check(self, conn: sa.Connection) -> None:
        """Replace a connection that the server has closed since it was used."""
        try:
            conn.execute(sa.text("SELECT 1"))
        except sa.exc.DBAPIError as exc:
            if not exc.connection_invalidated:
                raise
            conn.rollback()

    def change(self, remove: Collection[str], add: Collection[str], *, drop: bool) -> list[str]:
        """Remove and add the reservations of addresses, in one transaction.

        :param drop: whether the added ones make Kea ignore the client
        :returns: the addresses with reservations of others, which remain as they are
        """
        classes = DROP if drop else None
        rows = [self._row(octets, kind, classes) for mac in add for kind, octets in self._of(mac).items()]
        def work() -> list[str]:
            with self._engine.begin() as conn:
                self._delete(conn, sorted(remove))
                # A list of rows: one statement with the values of all takes much longer to make.
                inserted = conn.execute(self._insert, rows).rowcount if rows else 0
                return self._foreign(conn, add) if inserted < len(rows) else []

        began = time.monotonic()
        try:
            return work()
        except sa.exc.DBAPIError as exc:
            # The server has been restarted since: once more, which changes nothing that is done already. A check of the
            # connection before each transaction would cost as much as the transaction.
            if not exc.connection_invalidated or time.monotonic() - began > 1:
                raise
        return work()

    def foreign(self, macs: Collection[str]) -> list[str]:
        """Return those of the addresses that have reservations of others."""
        with self._engine.connect() as conn:
            return self._foreign(conn, macs)

    def can_tell(self, key: str) -> bool:
        """Return whether there is an identifier of the address, or of the key, among the configured kinds."""
        return bool(self._of(key))

    def _of(self, key: str) -> dict[str, bytes]:
        """Return the identifiers of an address or a key, by kind."""
        return {kind: octets for kind in self._kinds if (octets := identifier(key, kind)) is not None}

    def _row(self, octets: bytes, kind: str, classes: str | None) -> JSONObject:
        return {"dhcp_identifier": octets, "dhcp_identifier_type": self._kinds[kind],
                "dhcp4_subnet_id": _GLOBAL, "dhcp6_subnet_id": _GLOBAL, "dhcp4_client_classes": classes,
                "dhcp6_client_classes": classes, "user_context": self._context}

    def _delete(self, conn: sa.Connection, macs: Sequence[str]) -> None:
        for kind, number in IDENTIFIERS.items():  # also those that are not configured any more
            for start in range(0, len(macs), _CHUNK):
                values = [value for mac in macs[start:start + _CHUNK] if (value := identifier(mac, kind)) is not None]
                if not values:
                    continue
                conn.execute(sa.delete(_HOSTS).where(
                    _HOSTS.c.dhcp_identifier.in_(values), _HOSTS.c.dhcp_identifier_type == number,
                    _HOSTS.c.user_context.in_(self._contexts)))

    def _foreign(self, conn: sa.Connection, macs: Collection[str]) -> list[str]:
        ordered, keys = sorted(macs), set()
        for kind, number in self._kinds.items():
            for start in range(0, len(ordered), _CHUNK):
                chunk = [value for mac in ordered[start:start + _CHUNK] if (value := identifier(mac, kind)) is not None]
                rows = conn.execute(sa.select(_HOSTS.c.dhcp_identifier).where(
                    _HOSTS.c.dhcp_identifier.in_(chunk), _HOSTS.c.dhcp_identifier_type == number,
                    sa.or_(_HOSTS.c.dhcp4_subnet_id == _GLOBAL, _HOSTS.c.dhcp6_subnet_id == _GLOBAL),
                    sa.or_(_HOSTS.c.user_context.is_(None), _HOSTS.c.user_context != self._context)))
                keys |= {_key(row[0], number) for row in rows}
        return sorted(mac for mac in keys if mac)


#: Seconds that a command may take.
_TIMEOUT_S = 2.0
_MAX_ANSWER = 1024 * 1024


class KeaError(OSError):
    """The server is not running, does not answer, or refuses a command."""


def command(path: str, name: str, arguments: JSONObject | None = None) -> JSONObject:
    """Send a command; return the arguments of the answer.

    :raises KeaError: it was not executed
    """
    request = {"command": name} | ({"arguments": arguments} if arguments else {})
    deadline = time.monotonic() + _TIMEOUT_S
    answer = b""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as connection:
            connection.settimeout(_TIMEOUT_S)
            connection.connect(path)
            connection.sendall(json.dumps(request).encode())
            connection.shutdown(socket.SHUT_WR)
            while data := connection.recv(65536):
                answer += data
                if len(answer) > _MAX_ANSWER or time.monotonic() > deadline:
                    raise KeaError(f"{path}: the answer to {name} is too long")
    except KeaError:
        raise
    except OSError as exc:
        raise KeaError(f"{path}: {exc}") from exc
    try:
        reply = json_text.parse(answer.decode())
        result, text = reply["result"], reply.get("text", "")
        reply_arguments = reply.get("arguments") or {}
    except (ValueError, KeyError, TypeError, AttributeError) as exc:
        raise KeaError(f"{path}: the answer to {name} is not one of Kea's") from exc
    if result != 0 or not isinstance(reply_arguments, dict):
        raise KeaError(f"{path}: {name} failed: {printable(str(text), 200)}")
    return reply_arguments


LOG = logging.getLogger(__name__)

#: Seconds after which a database or a server is slow to refuse.
_SLOW_S = 1.0
#: Seconds for which a database that was slow to refuse is left alone.
_REST_S = 5.0
#: A tenth of the maximum number of seconds for which a silent server is left alone.
_MAX_PAUSE_S = 6.0
#: Pause before all reservations are read again, as a multiple of the time that a slow reading took.
_REST_AFTER_READING = 50


class KeaTarget(Target):
    """One host database, and the servers that read it.

    :param hosts: the reservations
    :param sockets: paths of the control sockets of the local servers
    :param layout: assigns addresses to groups
    :param allowed_only: the closed policy; False: the open one
    :param neighbours: names of other targets of the process that write into the database
    :param group: where the target is configured
    """

    slice_size = 256

    def __init__(self, hosts: Hosts, sockets: Sequence[str], layout: plan.Layout, *, allowed_only: bool,
                 neighbours: Collection[str] = (), group: str = GROUP.name) -> None:
        self.name = "the host database of Kea"
        self._hosts = hosts
        self._sockets = tuple(sockets)
        self._layout = layout
        self._allowed_only = allowed_only
        self._neighbours = neighbours
        self._group = group
        #: addresses with a reservation, by group; None: not read yet
        self._rows: dict[str, set[str]] | None = None
        #: addresses with a reservation of the opposite policy, or an incomplete one, which are removed first
        self._others: set[str] = set()
        #: addresses of ``_rows`` whose reservation is under a former name
        self._former: set[str] = set()
        self._foreign: set[str] = set()
        self._applied: set[str] = set()
        #: time at which the reservations were read last, and the seconds that it took
        self._loaded = (0.0, 0.0)
        #: the error of a database that was slow to refuse, and until when it is not asked again
        self._down: tuple[float, str] = (0.0, "")
        #: by socket of a server that is silent: until when it is left alone, and for how long the next time
        self._silent: dict[str, tuple[float, float]] = {}
        #: last command to the servers, and the process that got it by socket
        self._serves: bool | None = None
        self._told: dict[str, int] = {}

    @classmethod
    def make(cls, settings: TargetSettings, layout: plan.Layout) -> list[KeaTarget]:
        """Return the one for the configured database."""
        options = settings.options
        hosts = Hosts(options.kea_connection, options.kea_identifiers, settings.kea_name, options.kea_former_names)
        return [cls(hosts, options.kea_control_sockets, layout, allowed_only=settings.deny_unknown,
                    neighbours=settings.kea_neighbours, group=group_of(settings.name))]

    def open(self) -> Iterable[str]:
        """Read the reservations if the database is there; otherwise this is done before the first change."""
        try:
            self._begin()
        except sa.exc.SQLAlchemyError as exc:
            LOG.error("%s cannot be read; this is retried: %s", self.name, _text(exc))
        return ()

    def peek(self) -> tuple[Sequence[str], str]:
        """Return the number of addresses with a reservation: a committed row is in effect."""
        try:
            self._load()
            former, other = self._other_names()
        except sa.exc.SQLAlchemyError as exc:
            return [], f"unknown: {_text(exc)}"
        assert self._rows is not None
        kind = "allowed" if self._allowed_only else "denied"
        state = f"in effect: {sum(map(len, self._rows.values()))} addresses are {kind} by a reservation"
        state += f"; reservations under former names will be replaced: {former}" if former else ""
        return [], state + (f"; filters with other names have reservations: {other}" if other else "")

    def _begin(self) -> None:
        """Read the reservations for the first time, and log those under other names."""
        former, other = self._other_names()
        self._load()
        if former:
            LOG.info("%s has reservations under former names of [%s]: %s. They are replaced", self.name, self._group,
                     former)
        if other:
            unnamed = (f" '{UNNAMED}' is a filter without [pxe_filter]targets: unless one still runs, its reservations "
                       "are out of date.")
            LOG.warning("%s has reservations of filters with other names: %s. They remain in effect; if a name is a "
                        "former one of this filter, set [%s]kea_former_names.%s", self.name, other, self._group,
                        unnamed if f"'{UNNAMED}'" in other else "")

    def _other_names(self) -> tuple[str, str]:
        """Return the former names that have reservations, and the unknown ones, with the numbers."""
        texts = {name: f"'{printable(name, 64)}' ({number})" for name, number in sorted(self._hosts.names().items())
                 if name not in self._neighbours}
        former = self._hosts.former
        return (", ".join(text for name, text in texts.items() if name in former),
                ", ".join(text for name, text in texts.items() if name not in former))

    def _load(self) -> None:
        began = time.monotonic()
        rows: dict[str, set[str]] = {}
        others, former = set(), set()
        for mac, dropped, is_former in self._hosts.read():
            if dropped is None or dropped == self._allowed_only:
                others.add(mac)
                continue
            rows.setdefault(self._layout.file_of(mac), set()).add(mac)
            if is_former:
                former.add(mac)
        if self._foreign:  # others may have removed theirs
            self._foreign = set(self._hosts.foreign(self._foreign))
        self._rows, self._others, self._former = rows, others, former
        self._loaded = time.monotonic(), time.monotonic() - began

    def close(self) -> None:
        """Close the connections; the reservations remain."""
        self._hosts.close()

    def apply(self, batch: Batch) -> Outcome:
        """Change the reservations in one transaction, then tell the servers about unknown addresses."""
        written, began = 0, time.monotonic()
        until, reason = self._down
        try:
            if (batch.groups or batch.changes) and began < until:
                return self._failed(batch, reason)
            if batch.groups or batch.changes:
                written = self._change(batch)
        except sa.exc.SQLAlchemyError as exc:
            if time.monotonic() - began > _SLOW_S:  # it would keep each of the other batches waiting as long
                self._down = time.monotonic() + _REST_S, _text(exc)
            return self._failed(batch, _text(exc))
        if batch.allows_unknown is not None:
            self._serves = batch.allows_unknown
            problem = self._tell_all()
            if not (self._serves or self._allowed_only or self._sockets):
                problem = OSError("without kea_control_sockets, Kea cannot be made to serve no unknown client")
            if problem is not None:
                return Outcome(frozenset(), True, problem, written)
        return Outcome(frozenset(), False, None, written)

    def _failed(self, batch: Batch, reason: str) -> Outcome:
        names = frozenset((*batch.groups, *(self._layout.file_of(mac) for mac, _ in batch.changes)))
        return Outcome(names, batch.allows_unknown is not None, OSError(reason), 0)

    @property
    def takes_changes(self) -> bool:
        """Single addresses cost less than the comparison of whole groups."""
        return True

    def _change(self, batch: Batch) -> int:
        if self._rows is None:
            self._begin()
        assert self._rows is not None
        groups: dict[str, set[str]] = {}
        for mac, allowed in batch.changes:
            name = self._layout.file_of(mac)
            macs = groups.setdefault(name, set(self._rows.get(name, ())))
            if allowed == self._allowed_only and self._hosts.can_tell(mac):
                macs.add(mac)
            else:
                macs.discard(mac)
        groups |= {name: {mac for mac, allowed in pairs if allowed == self._allowed_only and self._hosts.can_tell(mac)}
                   for name, pairs in batch.groups.items()}
        remove, add = set(self._others), set()
        for name, macs in groups.items():
            has = self._rows.get(name, set())
            former = has & self._former
            remove |= former | (has - macs)
            add |= (former & macs) | (macs - has)
        if remove or add:
            foreign = self._hosts.change(remove, add, drop=not self._allowed_only)
            if foreign:
                LOG.error("Kea has other reservations for %s; they remain in effect", enumeration(foreign, 16))
            self._foreign = (self._foreign - remove) | set(foreign)
        self._others = set()
        self._former -= remove
        self._rows.update(groups)
        self._applied.update(groups)
        return len(remove) + len(add)

    def changed_by_others(self) -> Iterator[Found]:
        """Yield the groups whose reservations in the database are not those that were written.

        While they are read, nothing can be written. With so many that this takes long, it is done less often.
        """
        before, (loaded_at, took_s) = self._rows, self._loaded
        rest_s = _REST_AFTER_READING * took_s if took_s > _SLOW_S else 0
        if time.monotonic() < max(loaded_at + rest_s, self._down[0]):
            return
        try:
            if before is None:
                self._begin()
                return
            self._load()
        except sa.exc.SQLAlchemyError as exc:
            raise OSError(_text(exc)) from exc
        assert self._rows is not None
        for mac in self._foreign:  # they have no reservation of the filter
            self._rows.setdefault(self._layout.file_of(mac), set()).add(mac)
        groups = {name for name in before.keys() | self._rows.keys()
                  if before.get(name, set()) != self._rows.get(name, set())}
        groups |= {self._layout.file_of(mac) for mac in self._others}
        groups |= {self._layout.file_of(mac) for mac in self._former} & self._applied  # the others follow anyway
        if groups:
            yield Found(f"Reservations in {len(groups)} groups", frozenset(groups), ())

    def leftovers(self) -> frozenset[str]:
        """Return the groups with reservations that have no address any more, or that have another layout."""
        return frozenset((self._rows or {}).keys() - self._applied)

    def in_force(self) -> InForce:
        """Return nothing to wait for, unless a server that must start or stop to serve is unavailable."""
        if self._rows is None:
            return InForce(None, "the host database of Kea could not be read")
        problem = self._tell_all()
        if problem is not None:
            return InForce(0, str(problem))
        if self._foreign:
            return InForce(0, f"{len(self._foreign)} addresses have reservations of others")
        return InForce(0)

    def _tell_all(self) -> OSError | None:
        """Tell every server whether it serves, if it was not told or was restarted since; return the first error."""
        problem: OSError | None = None
        if self._allowed_only or self._serves is None:
            return None
        name = "dhcp-enable" if self._serves else "dhcp-disable"
        for path in self._sockets:
            until, pause_s = self._silent.get(path, (0.0, _SLOW_S))
            began = time.monotonic()
            if began < until:
                problem = problem or KeaError(f"{path}: the server does not reply")
                continue
            try:
                process = command(path, "status-get").get("pid", 0)
                state = process if self._serves else -process
                if self._told.get(path) != state:
                    command(path, name)
                    self._told[path] = state
                self._silent.pop(path, None)
            except KeaError as exc:
                self._told.pop(path, None)
                problem = problem or exc
                if time.monotonic() - began > _SLOW_S:  # during this time, no message is written
                    self._silent[path] = time.monotonic() + 10 * pause_s, min(2 * pause_s, _MAX_PAUSE_S)
        return problem


def _text(exc: Exception) -> str:
    """Return the first line of an error; the others are the statement."""
    return str(exc).partition("\n")[0]
