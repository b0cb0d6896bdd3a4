"""RPC calls to conductors: one method per call, with the names and arguments of the manager's methods."""

from __future__ import annotations

import contextlib
import datetime
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import oslo_messaging as messaging
from oslo_config import cfg
from oslo_log import log as logging

from ironic_rules import exceptions
from ironic_rules.context import RequestContext
from ironic_rules.metrics.numbers import Numbers
from ironic_rules.models.documents import JSONObject
from ironic_rules.rpc import transport as rpc_transport
from ironic_rules.rpc.serializer import Serializer

LOG = logging.getLogger(__name__)

_ERRORS = exceptions.http_errors()
#: Errors that conductors of the previous version have a class of their own for, by its name.
_FORMER: dict[str, exceptions.Wording[exceptions.IronicRulesError]] = {
    "InvalidState": exceptions.invalid_state, "NodeProtected": exceptions.node_protected,
    "OutcomeUnknown": exceptions.outcome_unknown, "StillRunning": exceptions.still_running,
    "TooManyCalls": exceptions.too_many_calls, "TooManyConfigDrives": exceptions.too_many_config_drives}
#: Number of retries if the broker is unavailable; without it, oslo.messaging retries without limit.
_RETRIES = 2
#: Seconds that a request waits for the first connection to the broker.
_CONTACT_TIMEOUT_S = 5.0
#: Maximum number of times that a call is sent again if the conductor that got it has lost its database.
_OTHERS = 2
#: A topic to which no server listens.
_NOBODY = "ironic_rules.nobody"
#: Seconds without a reply after which a call counts as hung, and that a call waits for its turn.
_PATIENCE_S = 1.0
#: Seconds for which the calls of ramdisks assume that a group's conductor which was alive still is.
_SERVED_FOR_S = 0.5


class _Contact:
    """The first connection to the broker. oslo.messaging waits for it without limit, as would every API thread."""

    def __init__(self, client: messaging.RPCClient) -> None:
        self._client = client
        self._made = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def wait(self, timeout_s: float) -> None:
        """Return once the broker has been reached.

        :raises Unavailable: 503, not within ``timeout_s`` seconds
        """
        if self._made.is_set():
            return
        with self._lock:
            # Not at start-up: servers like gunicorn fork later, and the new process would not have the thread.
            if self._thread is None:
                self._thread = threading.Thread(target=self._make, name="rpc-contact", daemon=True)
                self._thread.start()
        if not self._made.wait(timeout_s):
            raise exceptions.Unavailable

    def _make(self) -> None:
        # A call without a server: oslo.messaging opens the connection for replies with the first call.
        client = self._client.prepare(topic=_NOBODY, timeout=0.01)
        try:
            client.call(RequestContext(overwrite=False), "hello")
        except messaging.MessagingException:
            self._made.set()
        except Exception:  # otherwise the errors of a thread are lost
            LOG.exception("Cannot connect to the message broker; the next request will try again")
        finally:
            self._thread = None


class _Waits:
    """Bounds the number of threads that wait for conductors, so that a hung one leaves threads for other requests.

    While conductors reply, a call waits for its turn. It is refused at once if all turns are taken and the oldest call
    has no reply for ``_PATIENCE_S``.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._begun: dict[int, float] = {}
        self._changed = threading.Condition()

    @property
    def number(self) -> int:
        return len(self._begun)

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for a turn.

        :raises Unavailable: 503
        """
        me, last = threading.get_ident(), time.monotonic() + _PATIENCE_S
        with self._changed:
            while len(self._begun) >= self._most:
                remaining = min(last, min(self._begun.values()) + _PATIENCE_S) - time.monotonic()
                if remaining <= 0:
                    raise exceptions.Unavailable
                self._changed.wait(remaining)
            self._begun[me] = time.monotonic()
        try:
            yield
        finally:
            with self._changed:
                del self._begun[me]
                self._changed.notify()


class ConductorAPI:
    """The client side. Every call has the node, and the conductor group that manages it (``group``).

    All calls raise what the conductor raised (:mod:`ironic_rules.exceptions`), ``RPCTimeout`` (503) if no conductor
    replied, ``outcome_unknown`` (503) if the broker failed while the message was sent, and ``Unavailable`` (503) if it
    was not sent.

    :param is_served: returns whether a conductor of a group is alive. Without one, calls fail at once, instead of
        occupying one of the API's threads until the timeout.
    :param most_waiting: maximum number of calls that wait for a conductor at the same time
    :param numbers: where calls are counted
    :param now: the time of the database, by which calls expire when their callers no longer wait; None: they expire in
        the broker only
    """

    def __init__(self, transport: messaging.RPCTransport, conf: cfg.ConfigOpts,
                 is_served: Callable[[str], bool] = lambda group: True, most_waiting: int = 1000,
                 numbers: Numbers | None = None, now: Callable[[], datetime.datetime] | None = None) -> None:
        self._client = messaging.get_rpc_client(
            transport, messaging.Target(version=rpc_transport.BASE_VERSION), serializer=Serializer(),
            version_cap=rpc_transport.VERSION, retry=_RETRIES)
        self._is_served = is_served
        self._contact = _Contact(self._client)
        self._waits = _Waits(most_waiting)
        # BMCs may be slow: other calls have turns left.
        self._hardware_waits = _Waits(max(1, most_waiting // 2))
        self._numbers = numbers or Numbers()
        self._numbers.gauge("rpc_calls_waiting", lambda: {(): self._waits.number})
        self._served_until: dict[str, float] = {}
        self._now = now
        self._conf = conf
        conf.set_default("rpc_response_timeout", rpc_transport.RESPONSE_TIMEOUT_S)

    def continue_inspection(self, context: RequestContext, node_id: str | int, inventory: JSONObject,
                            plugin_data: JSONObject | None = None, refusal: str | None = None, *,
                            group: str = "") -> bool | None:
        """Pass a ramdisk's data to a conductor; when this returns, the data is stored and the node is INSPECTING.

        :param refusal: why the inspection has to fail; the data are stored nevertheless
        :returns: whether the ramdisk has the token of the context; None: nothing was done with it, as by conductors of
            before, which do not know it
        :raises NodeLocked: 409
        :raises NotFound: 404, the node is not in INSPECT WAIT
        :raises no_valid_host: 503
        """
        self._require_conductor_lately(group)
        arguments: JSONObject = {"node_id": node_id, "inventory": inventory, "plugin_data": plugin_data}
        since = rpc_transport.BASE_VERSION
        if refusal is not None:
            since, arguments["refusal"] = "1.1", refusal
        claimed: bool | None = self._call(context, group, "continue_inspection", since=since, **arguments)
        return claimed

    def change_provision_state(self, context: RequestContext, node_id: str | int, target: str, *, group: str = "",
                               **args: Any) -> None:
        """Start the transition ``target`` (a verb of ``states/provision``).

        :param args: ``configdrive``, ``clean_steps``, ``deploy_steps``, ``service_steps``, ``rescue_password``
        :raises invalid_state: 400;  NodeLocked: 409;  no_valid_host, NoFreeWorker: 503
        """
        self._require_conductor(group)
        self._call(context, group, "change_provision_state", node_id=node_id, target=target, args=args)

    def change_power_state(self, context: RequestContext, node_id: str | int, target: str,
                           timeout: int | None = None, *, group: str = "") -> None:
        """Start changing the power state; ``timeout`` in seconds.

        :raises NodeLocked: 409;  no_valid_host, NoFreeWorker: 503
        """
        self._require_conductor(group)
        self._call(context, group, "change_power_state", node_id=node_id, target=target, timeout=timeout)

    def validate_interfaces(self, context: RequestContext, node_id: str | int, *, group: str = "") -> JSONObject:
        """Return ``{interface: {"result": bool, "reason": text}}``; ``reason`` only if the result is false.

        :raises no_valid_host: 503
        """
        self._require_conductor(group)
        return self._call(context, group, "validate_interfaces", node_id=node_id)

    def call_hardware(self, context: RequestContext, node_id: str | int, operation: str, *, group: str = "",
                      **args: Any) -> Any:
        """Carry out an operation of ``conductor.hardware_calls`` on the node; return its result.

        :raises Invalid: 400;  NodeLocked: 409;  BMCError: 502;  no_valid_host, too_many_calls, still_running: 503
        """
        self._require_conductor(group)
        with self._hardware_waits.turn():
            return self._call(context, group, "call_hardware", since="1.2", node_id=node_id, operation=operation,
                              args=args)

    def heartbeat(self, context: RequestContext, node_id: str | int, callback_url: str,
                  agent_version: str | None = None, *, group: str = "", **details: Any) -> None:
        """Record a ramdisk's heartbeat.

        :param details: ``agent_token``, ``agent_verify_ca``, ``agent_status``, ``agent_status_message``
        :raises NodeLocked: 409;  no_valid_host: 503
        """
        self._require_conductor_lately(group)
        self._call(context, group, "heartbeat", node_id=node_id, callback_url=callback_url,
                   agent_version=agent_version, details=details)

    def ping_broker(self) -> None:
        """Check that the broker takes messages; this can take as long as oslo.messaging tries to connect.

        :raises Unavailable: 503
        """
        client = self._client.prepare(topic=_NOBODY, timeout=0.01)
        try:
            client.call(RequestContext(overwrite=False), "hello")
        except messaging.MessagingTimeout:
            return
        except (messaging.MessagingException, *_undelivered()) as exc:
            raise exceptions.Unavailable from exc

    def _require_conductor(self, group: str) -> None:
        if not self._is_served(group):
            raise exceptions.no_valid_host()

    def _require_conductor_lately(self, group: str) -> None:
        """As ``_require_conductor``, for the calls of ramdisks, of which there may be hundreds per second."""
        now = time.monotonic()
        if self._served_until.get(group, 0.0) < now:
            self._require_conductor(group)
            self._served_until[group] = now + _SERVED_FOR_S

    def _call(self, context: RequestContext, group: str, method: str, *, since: str = rpc_transport.BASE_VERSION,
              **arguments: Any) -> Any:
        """Call a method of the version ``since`` of the interface, which older conductors refuse."""
        began, outcome = time.monotonic(), "failed"
        try:
            with self._waits.turn():
                result = self._reply_of_any(context, group, method, since, arguments)
            outcome = "replied"
            return result
        except exceptions.RPCTimeout:
            outcome = "no reply"
            raise
        except exceptions.Unavailable:
            outcome = "unavailable"
            raise
        except exceptions.IronicRulesError:
            outcome = "refused"
            raise
        finally:
            self._numbers.observe("rpc_call_duration_seconds", time.monotonic() - began, method, outcome)

    def _reply_of_any(self, context: RequestContext, group: str, method: str, since: str, arguments: JSONObject) -> Any:
        for _ in range(_OTHERS):
            # The broker gives the next message to another conductor of the group, if there is one.
            with contextlib.suppress(exceptions.ConductorCannotServe):
                return self._reply(context, group, method, since, arguments)
        return self._reply(context, group, method, since, arguments)

    def _reply(self, context: RequestContext, group: str, method: str, since: str, arguments: JSONObject) -> Any:
        self._contact.wait(_CONTACT_TIMEOUT_S)
        if self._now is not None:
            expires_at = self._now() + datetime.timedelta(seconds=self._conf.rpc_response_timeout)
            context.expires_at = expires_at.isoformat()
        try:
            client = self._client.prepare(topic=rpc_transport.conductor_topic(group), version=since)
            return client.call(context, method, **arguments)
        except messaging.MessagingTimeout as exc:
            raise exceptions.RPCTimeout from exc
        except messaging.UnsupportedVersion as exc:
            LOG.warning("The conductors of group %r are older than this API, which needs version %s of their interface "
                        "for %s; upgrade them", group, since, method)
            raise exceptions.Unavailable from exc
        except _undelivered() as exc:
            LOG.warning("The message broker is unavailable, the call may not have reached a conductor: %s", exc)
            raise exceptions.outcome_unknown() from exc
        except messaging.RemoteError as exc:  # of a class that this module does not have
            if exc.exc_type not in _FORMER:
                raise
            former = _FORMER[exc.exc_type]
            raise exceptions.rebuild(former.error, str(exc.value), {}, former.message_id) from None
        except exceptions.IronicRulesError as exc:
            raise _local(exc) from None


def _local(error: exceptions.IronicRulesError) -> exceptions.IronicRulesError:
    """Return a remote error as the original class: oslo.messaging's copy appends the remote traceback to its text."""
    name = type(error).__name__.removesuffix("_Remote")
    cls = _ERRORS.get(name, exceptions.IronicRulesError)
    message_id = error.facts.get("message_id", cls.message_id)
    return exceptions.rebuild(cls, str(error.args[0]) if error.args else cls.message, {}, message_id)


def _undelivered() -> tuple[type[BaseException], ...]:
    """Return what sending raises if the broker is unavailable.

    oslo.messaging does not convert its libraries' errors if it opens another connection.
    """
    from amqp import exceptions as amqp  # with the in-memory transport, neither of them is needed
    from kombu import exceptions as kombu

    return (messaging.MessageDeliveryFailure, amqp.AMQPError, kombu.KombuError, OSError)
