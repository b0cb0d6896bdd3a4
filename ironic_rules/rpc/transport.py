"""The message transport, its topics, and the server side of RPC."""

from __future__ import annotations

import contextlib
import importlib
import os
import ssl
from typing import Any

import oslo_messaging as messaging
from oslo_config import cfg
from oslo_messaging import server as messaging_server
from oslo_messaging.rpc import client as rpc_client
from oslo_messaging.rpc import dispatcher
from oslo_messaging.rpc.server import RPCServer

from ironic_rules.conf import opts
from ironic_rules.entry_points import in_group
from ironic_rules.exceptions import ConfigurationError
from ironic_rules.rpc import memory, notifications
from ironic_rules.rpc.serializer import Serializer
from ironic_rules.text import printable

#: Version of the conductor's RPC interface. 1.1 added ``refusal`` to ``continue_inspection``, 1.2 ``call_hardware``.
VERSION = "1.2"
#: The version that calls need unless said otherwise: conductors that are not upgraded yet have it.
BASE_VERSION = "1.0"
#: Seconds that a caller waits for a conductor. A ramdisk that gets no reply repeats its POST.
RESPONSE_TIMEOUT_S = 30
#: Number of calls that a conductor processes at the same time. They are short: the work is done in other threads.
SERVER_THREADS = 16
_TOPIC = "ironic_rules.conductor"
#: The transports of oslo.messaging's driver for RabbitMQ.
_RABBIT = ("rabbit:", "kombu+")
#: The transport that oslo.messaging uses if the configuration sets none.
_UNSET = "rabbit://"
#: The port of RabbitMQ without a port in the URL; and seconds that RabbitMQ may take at the start of a process.
_PORT, _CONNECT_S = 5672, 5
_EXAMPLE = "such as rabbit://USER:PASSWORD@HOST:5672/VHOST"


def conductor_topic(group: str) -> str:
    """Return the topic that all conductors of a group share; the broker balances its messages among them."""
    return f"{_TOPIC}.{group}" if group else _TOPIC


def set_default_url(conf: cfg.ConfigOpts, url: str) -> None:
    """Use ``url`` if the configuration does not set ``transport_url``."""
    messaging.TransportURL.parse(conf)  # registers the option
    conf.set_default("transport_url", url)


def register_opts(conf: cfg.ConfigOpts, default_url: str | None = None) -> None:
    """Register the options of oslo.messaging that a process reads, those of RabbitMQ only if it is the transport.

    The library itself registers them only when it creates its parts, and a process reads all options before that.

    :param default_url: as of :func:`set_default_url`; None: the library's
    """
    if default_url is not None:
        set_default_url(conf, default_url)
    messaging.TransportURL.parse(conf)
    # Options of calls and of servers, with any transport.
    conf.register_opts([*rpc_client._client_opts, *messaging_server._pool_opts])
    if conf.notification_level is not None:
        notifications.register_opts(conf)
    if not str(conf.transport_url).startswith(_RABBIT):
        return
    for group, options in opts.messaging_opts():
        if group != notifications.GROUP:
            conf.register_opts(options, group=group)


def _register_library_groups(conf: cfg.ConfigOpts) -> None:
    """Register options that oslo.messaging reads from ``conf`` but registers only with the global ``cfg.CONF``."""
    for group in ("oslo_messaging_tracing", "oslo_messaging_metrics"):
        module = f"oslo_messaging._{group.rpartition('_')[2]}.client"
        with contextlib.suppress(ImportError, AttributeError):  # versions without tracing have nothing to register
            conf.register_opts(getattr(importlib.import_module(module), group), group=group)


def problem_of(conf: cfg.ConfigOpts) -> str | None:
    """Return why ``[DEFAULT]transport_url`` can be no transport, before it is used; None if it can be one.

    None also if the option cannot be read, which reading all options reports.
    """
    try:
        url = messaging.TransportURL.parse(conf)
    except (messaging.InvalidTransportURL, ValueError):
        return (f"no URL of a transport; one {_EXAMPLE} is required, with %40 for @, %2F for / and %25 for % in a "
                "password")
    except cfg.Error:
        return None
    name = printable(url.transport, 64)
    drivers = in_group("oslo.messaging.drivers").select(name=url.transport.partition("+")[0])
    if (driver := next(iter(drivers), None)) is None:
        return f"there is no transport {name}; one {_EXAMPLE} is required"
    try:
        driver.load()
    except ImportError as exc:
        return f"the transport {name} cannot be used: {printable(exc)}; one {_EXAMPLE} is required"
    return None


def check_broker(conf: cfg.ConfigOpts) -> str | None:
    """Connect to RabbitMQ, if that is the transport; return why it cannot be reached now, None if it can.

    :raises ConfigurationError: it refuses the user, the password or the virtual host, TLS is not as configured, or a
        file for it cannot be read
    """
    url = messaging.TransportURL.parse(conf)
    if not str(conf.transport_url).startswith(_RABBIT) or not url.hosts:
        return None
    import amqp  # only with RabbitMQ

    tls = conf.oslo_messaging_rabbit
    for name in ("ssl_ca_file", "ssl_cert_file", "ssl_key_file") if tls.ssl else ():
        if tls[name] and not os.access(tls[name], os.R_OK):
            raise ConfigurationError(f"[oslo_messaging_rabbit]{name}: {printable(tls[name])} cannot be read: correct "
                                     "the path, or give the file to the user of this process.")
    place = ", ".join(f"{host.hostname}:{host.port or _PORT}" for host in url.hosts)
    user, vhost = (printable(name or "", 64) for name in (url.hosts[0].username, url.virtual_host or "/"))
    option = f"[DEFAULT]transport_url: RabbitMQ at {printable(place)}"
    try:
        return _reached(url, tls, option)
    except (amqp.AccessRefused, amqp.NotAllowed) as exc:
        message = printable(exc)
        if "vhost" not in message:
            raise ConfigurationError(f"{option} refuses the login of user {user}: correct user and password, or change "
                                     f"them there (rabbitmqctl change_password). The error is: {message}") from exc
        if "not found" in message:
            raise ConfigurationError(f"{option} has no virtual host {vhost}: correct the end of the URL, or add the "
                                     f"virtual host there (rabbitmqctl add_vhost). The error is: {message}.") from exc
        raise ConfigurationError(f"{option} does not let user {user} use the virtual host {vhost}: correct the end of "
                                 f"the URL, or permit it there (rabbitmqctl set_permissions). The error is: {message}."
                                 ) from exc


def _reached(url: messaging.TransportURL, tls: Any, option: str) -> str | None:
    """Log in to the first host of a transport that can be reached, as oslo.messaging does; return why none can be.

    :raises amqp.AMQPError: RabbitMQ refuses the login or the virtual host
    """
    import amqp
    import kombu

    away = None
    for host in url.hosts:
        files = {"keyfile": tls.ssl_key_file, "certfile": tls.ssl_cert_file, "ca_certs": tls.ssl_ca_file}
        verified = {"cert_reqs": ssl.CERT_REQUIRED, "server_hostname": host.hostname} if tls.ssl_ca_file else {}
        connection = kombu.Connection(
            transport="pyamqp", hostname=host.hostname, port=host.port or _PORT, userid=host.username,
            password=host.password, virtual_host=url.virtual_host or "/", login_method=tls.rabbit_login_method,
            connect_timeout=_CONNECT_S,
            ssl=({name: file for name, file in files.items() if file} | verified or True) if tls.ssl else False)
        try:
            with connection:
                connection.connect()
                return None
        except (OSError, *connection.connection_errors) as exc:
            if isinstance(exc, amqp.AccessRefused | amqp.NotAllowed):
                raise
            away = _away(exc, option)
    return away


def _away(error: BaseException, option: str) -> str:
    """Return why RabbitMQ cannot be reached now.

    :raises ConfigurationError: it can be reached, but not as configured
    """
    message = printable(error)
    tls = next((cause for cause in (error, error.__cause__, error.__context__)
                if isinstance(cause, ssl.SSLError)), None)
    if tls is not None or "[SSL" in message:
        raise ConfigurationError(f"{option} and [oslo_messaging_rabbit]ssl do not fit together: correct the port (5671 "
                                 f"with TLS, as a rule), ssl or ssl_ca_file. The error is: {message}.") from error
    return (f"{option} cannot be reached: start it, or correct host, port and [oslo_messaging_rabbit]ssl. This process "
            f"waits for it. The error is: {message}.")


def get_transport(conf: cfg.ConfigOpts) -> messaging.RPCTransport:
    """Return the transport of ``[DEFAULT]transport_url``.

    :raises ConfigurationError: it is not set. oslo.messaging would log in as guest at whatever listens on this machine
    """
    place = conf.get_location("transport_url")
    if conf.transport_url == _UNSET and place is not None and place.location is cfg.Locations.opt_default:
        raise ConfigurationError(
            f"[DEFAULT]transport_url is not set: set the URL of RabbitMQ, {_EXAMPLE}, or run everything in one process "
            "with ironic-rules.")
    _register_library_groups(conf)
    return messaging.get_rpc_transport(conf, allowed_remote_exmods=["ironic_rules.exceptions", dispatcher.__name__])


def get_server(transport: messaging.RPCTransport, conf: cfg.ConfigOpts, endpoint: object, group: str) -> Any:
    """Return an RPC server (``start``, ``stop``, ``wait``) that calls ``endpoint`` for the group's messages."""
    target = messaging.Target(topic=conductor_topic(group), server=conf.host, version=VERSION)
    is_local = messaging.TransportURL.parse(conf).transport == memory.SCHEME
    server = messaging.get_rpc_server(
        transport, target, [endpoint], serializer=Serializer(), access_policy=dispatcher.DefaultRPCAccessPolicy,
        server_cls=memory.Server if is_local else RPCServer)
    conf.set_default("executor_thread_pool_size", SERVER_THREADS)
    return server
