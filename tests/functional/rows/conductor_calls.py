"""Calls of a conductor's methods, with oslo.messaging as any other service would use it."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import oslo_messaging as messaging

from ironic_rules import context, exceptions
from ironic_rules.rpc import transport as rpc_transport
from ironic_rules.rpc.serializer import Serializer
from tests.functional.whole import Whole

#: The errors that callers distinguish, the more special ones first.
ERRORS = (exceptions.NodeLocked, exceptions.NotFound, messaging.MessagingException)


class InMemory:
    """A client of oslo.messaging that uses only our topic and our serialization of JSON and contexts."""

    def __init__(self, transport: messaging.RPCTransport, version: str) -> None:
        target = messaging.Target(topic=rpc_transport.conductor_topic(""), version=version)
        self._client = messaging.get_rpc_client(transport, target, serializer=Serializer(), timeout=60)

    def __call__(self, **arguments: Any) -> Any:
        return self._client.call(context.admin(), "continue_inspection", **arguments)


class OverRabbitMQ:
    """The same in a process of its own, see ``rpc_caller``."""

    def __init__(self, url: str, version: str) -> None:
        self._version = version
        self.process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "tests.functional.rows.rpc_caller", url],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def raw(self, **arguments: Any) -> Any:
        """Return what the process prints of a call."""
        assert self.process.stdin is not None and self.process.stdout is not None
        print(json.dumps({"version": self._version, "arguments": arguments}), file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())

    def __call__(self, **arguments: Any) -> Any:
        failed = self.raw(**arguments)
        if failed is None:
            return None
        names, text = failed
        cls = next(cls for cls in ERRORS if cls.__name__ in names)
        raise exceptions.rebuild(cls, text, {}) if issubclass(cls, exceptions.IronicRulesError) else cls(text)


@contextlib.contextmanager
def calling(whole: Whole, version: str = "1.0") -> Iterator[Any]:
    """Yield what calls ``continue_inspection`` of the conductor with named arguments."""
    url = messaging.TransportURL.parse(whole.conf)
    if url.transport == "rabbit":
        client = OverRabbitMQ(str(url), version)
        with client.process:
            yield client
            client.process.stdin.close()
        return
    transport = rpc_transport.get_transport(whole.conf)
    try:
        yield InMemory(transport, version)
    finally:
        transport.cleanup()
