"""The message transport, its topics, and the server side of RPC."""

from __future__ import annotations

import contextlib
import importlib
from typing import Any

import oslo_messaging as messaging
from oslo_config import cfg
from oslo_messaging import server as messaging_server
from oslo_messaging.rpc import client as rpc_client
from oslo_messaging.rpc import dispatcher
from oslo_messaging.rpc.server import RPCServer

from ironic_rules.conf import opts
from ironic_rules.rpc import memory
from ironic_rules.rpc.serializer import Serializer

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
    # Those of calls and of servers, with any transport.
    conf.register_opts([*rpc_client._client_opts, *messaging_server._pool_opts])
    if not str(conf.transport_url).startswith(_RABBIT):
        return
    for group, options in opts.messaging_opts():
        conf.register_opts(options, group=group)


def _register_library_groups(conf: cfg.ConfigOpts) -> None:
    """Register options that oslo.messaging reads from ``conf`` but registers only with the global ``cfg.CONF``."""
    for group in ("oslo_messaging_tracing", "oslo_messaging_metrics"):
        module = f"oslo_messaging._{group.rpartition('_')[2]}.client"
        with contextlib.suppress(ImportError, AttributeError):  # versions without tracing have nothing to register
            conf.register_opts(getattr(importlib.import_module(module), group), group=group)


def get_transport(conf: cfg.ConfigOpts) -> messaging.RPCTransport:
    """Return the transport of ``[DEFAULT]transport_url``."""
    _register_library_groups(conf)
    return messaging.get_rpc_transport(conf, allowed_remote_exmods=["ironic_rules.exceptions", dispatcher.__name__])


def get_server(transport: messaging.RPCTransport, conf: cfg.ConfigOpts, endpoint: Any, group: str) -> Any:
    """Return an RPC server (``start``, ``stop``, ``wait``) that calls ``endpoint`` for the group's messages."""
    target = messaging.Target(topic=conductor_topic(group), server=conf.host, version=VERSION)
    is_local = messaging.TransportURL.parse(conf).transport == memory.SCHEME
    server = messaging.get_rpc_server(
        transport, target, [endpoint], serializer=Serializer(), access_policy=dispatcher.DefaultRPCAccessPolicy,
        server_cls=memory.Server if is_local else RPCServer)
    conf.set_default("executor_thread_pool_size", SERVER_THREADS)
    return server
