"""Connections to BMCs, and their failures as one error. sushy is imported when the first interface is created."""

from __future__ import annotations

import contextlib
import importlib
import json
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

import urllib3
from oslo_config import cfg
from oslo_log import log

from ironic_rules import context
from ironic_rules.exceptions import BMCError, ConfigurationError
from ironic_rules.hardware.base import Interface, InterfaceOf
from ironic_rules.hardware.redfish import driver_info, quick_read
from ironic_rules.hardware.redfish.driver_info import DriverInfo
from ironic_rules.models.task import Task
from ironic_rules.text import printable

LOG = log.getLogger(__name__)

_MAX_REASON = 500
#: HTTP status of what a BMC does not have (any more).
GONE = frozenset({404, 410})


def sushy() -> Any:
    """Return the package.

    :raises ConfigurationError: it is not installed
    """
    try:
        return importlib.import_module("sushy")
    except ImportError as exc:
        raise ConfigurationError("Redfish interfaces are enabled, but sushy is not installed: "
                                 "pip install 'ironic-rules[redfish]'.") from exc


class Connections:
    """Bounded cache of sessions; the least recently used one is dropped. Thread-safe."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._kept: OrderedDict[DriverInfo, Any] = OrderedDict()

    def get(self, wanted: DriverInfo) -> Any | None:
        """Return the connection, None if there is none."""
        with self._guard:
            if wanted in self._kept:
                self._kept.move_to_end(wanted)
            return self._kept.get(wanted)

    def put(self, wanted: DriverInfo, connection: Any, limit: int) -> None:
        """Cache a connection, as one of at most ``limit``."""
        dropped = []
        with self._guard:
            self._kept[wanted] = connection
            self._kept.move_to_end(wanted)
            while len(self._kept) > limit:
                dropped.append(self._kept.popitem(last=False))
        # Deleting the last reference logs out, which sends a request: not while the lock is held.
        dropped.clear()

    def drop(self, wanted: DriverInfo) -> None:
        """Drop a connection that does not work or no longer works."""
        with self._guard:
            dropped = self._kept.pop(wanted, None)
        del dropped

    def __len__(self) -> int:
        with self._guard:
            return len(self._kept)


CONNECTIONS = Connections()


class RedfishInterface(Interface):
    """Mix-in of the interfaces that access a node's BMC by Redfish."""

    properties = driver_info.PROPERTIES

    def __init__(self, conf: cfg.ConfigOpts, interface_of: InterfaceOf) -> None:
        super().__init__(conf, interface_of)
        self.sushy = sushy()

    def validate(self, task: Task) -> None:
        self.driver_info(task)

    def driver_info(self, task: Task) -> DriverInfo:
        """Return the address of the node's BMC and how to log in.

        :raises InvalidParameterValue: ``driver_info`` is incomplete or invalid
        """
        return driver_info.parse(task.node.driver_info, self.conf.redfish.auth_type)

    @contextlib.contextmanager
    def system(self, task: Task) -> Iterator[Any]:
        """Provide the node's ``sushy.resources.system.system.System``, freshly read.

        :raises BMCError: instead of any exception that sushy raises in the block
        """
        wanted = self.driver_info(task)
        with self._reported(task, wanted):
            yield self._connection(wanted).get_system(wanted.system_id)

    def read(self, task: Task, path: str) -> tuple[int, dict[str, Any]]:
        """Return the HTTP status and the JSON object at ``path`` of the node's BMC, by one request as a rule.

        A status of 404 or 410 is returned, without an object, and so is what a BMC sends without a body.

        :raises BMCError: the BMC cannot be asked, or returns another error or no object
        """
        wanted = self.driver_info(task)
        if not path.startswith("/") or path.startswith("//"):
            # sushy would send the credentials to the host of a URL.
            raise BMCError(node=task.node.uuid, reason=f"{printable(path, _MAX_REASON)} is not one of its paths.")
        with self._reported(task, wanted):
            status, body = self._get(self._connection(wanted)._conn, path)
            found = {} if status in GONE or not body else json.loads(body)
            if not isinstance(found, dict):
                raise TypeError(f"{path} is not an object")
            return status, found

    def _get(self, connector: Any, path: str) -> tuple[int, bytes]:
        options = self.conf.redfish
        try:
            reply = quick_read.get(connector, path, options.connect_timeout, options.request_timeout)
        except urllib3.exceptions.HTTPError as exc:
            raise self.sushy.exceptions.ConnectionError(url=path, error=exc) from exc
        if reply is not None and (reply[0] in GONE or 200 <= reply[0] < 300):
            return reply
        # Without repetitions, during which this thread would sleep: the next poll is one.
        told = connector.get(path, server_side_retries_left=0)
        return int(told.status_code), told.content

    @contextlib.contextmanager
    def _reported(self, task: Task, wanted: DriverInfo) -> Iterator[None]:
        """Raise a BMCError instead of any exception that sushy raises in the block."""
        errors = self.sushy.exceptions
        try:
            yield
        except (errors.AccessError, errors.MissingXAuthToken) as exc:
            CONNECTIONS.drop(wanted)
            raise _error(task, wanted, f"{wanted.address} refuses the user name or the password, or the user has "
                                       "insufficient privileges", exc) from exc
        except errors.ConnectionError as exc:
            CONNECTIONS.drop(wanted)
            raise _error(task, wanted, f"{wanted.address} cannot be reached", exc) from exc
        except errors.UnknownDefaultError as exc:
            raise _error(task, wanted, f"{wanted.address} does not have exactly one system; set "
                                       "driver_info/redfish_system_id", None) from exc
        except errors.SushyError as exc:
            raise _error(task, wanted, f"{wanted.address} refused a request", exc) from exc
        except (AttributeError, KeyError, TypeError, ValueError) as exc:
            # sushy assumes that the BMC's JSON conforms to the standard, and raises these errors if it does not.
            LOG.warning("The BMC of node %s sent an invalid response", task.node.uuid, exc_info=True)
            raise _error(task, wanted, f"{wanted.address} sent an invalid response", exc) from exc

    def root(self, task: Task) -> dict[str, Any]:
        """Return the service root of the node's BMC as it was when the connection was made."""
        found = self._connection(self.driver_info(task)).json
        return found if isinstance(found, dict) else {}

    def _connection(self, wanted: DriverInfo) -> Any:
        connection = CONNECTIONS.get(wanted)
        if connection is None:
            options = self.conf.redfish
            auth = {"auto": self.sushy.auth.SessionOrBasicAuth, "basic": self.sushy.auth.BasicAuth,
                    "session": self.sushy.auth.SessionAuth}[wanted.auth_type]
            connection = self.sushy.Sushy(
                wanted.address, auth=auth(username=wanted.username, password=wanted.password), verify=wanted.verify,
                server_side_retries=options.connection_attempts,
                server_side_retries_delay=options.connection_retry_interval,
                read_timeout=options.request_timeout, connect_timeout=options.connect_timeout)
            _name_requests(connection)
            CONNECTIONS.put(wanted, connection, options.connection_cache_size)
        return connection


def documents(system: Any) -> Callable[[str], Any]:
    """Return a function that reads any JSON document of the system's BMC, also in several threads at the same time.

    sushy has classes for a part of the resources only, and reads members of collections one after the other.
    """
    connector, caller = system._conn, context.current()

    def read(path: str) -> Any:
        if caller is not None:
            caller.update_store()
        return connector.get(path).json()

    return read


def _name_requests(connection: Any) -> None:
    """Let each request to a BMC have the id of the request for which it is made. sushy has no setting for that."""
    session = connection._conn._session
    send = type(session).request
    # Not the session itself: a cycle would keep its connection open until it is collected.
    owner = weakref.proxy(session)

    def request(*arguments: Any, headers: Any = None, **named: Any) -> Any:
        return send(owner, *arguments, headers={**(headers or {}), **context.request_id_header()}, **named)

    session.request = request


def _error(task: Task, wanted: DriverInfo, reason: str, exc: Exception | None) -> BMCError:
    detail = "" if exc is None else f": {' '.join(str(exc).split())}"
    # A BMC may return what was sent to it.
    if wanted.password:
        detail = detail.replace(wanted.password, "******")
    return BMCError(node=task.node.uuid, reason=reason + detail[:_MAX_REASON] + ("" if detail.endswith(".") else "."))
