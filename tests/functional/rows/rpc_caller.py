"""Calls ``continue_inspection`` of a conductor over RabbitMQ with oslo.messaging only, in a separate process.

Its argument is the transport URL. Each line of its input is a call, ``{"version", "arguments"}``, and each line that it
prints the result of one: null, or the names of the error's classes and its text.
(The library leaves sockets behind that it has not closed; they end with the process.)
"""

from __future__ import annotations

import json
import sys
from typing import Any

# Before oslo.messaging.
import ironic_rules.cmd  # noqa: F401  isort: skip

import oslo_messaging as messaging
from oslo_config import cfg

from ironic_rules import context
from ironic_rules.exceptions import IronicRulesError
from ironic_rules.rpc import transport as rpc_transport
from ironic_rules.rpc.serializer import Serializer


def main() -> None:
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[])
    rpc_transport._register_library_groups(conf)
    transport = messaging.get_rpc_transport(conf, sys.argv[1], allowed_remote_exmods=["ironic_rules.exceptions"])
    target = messaging.Target(topic=rpc_transport.conductor_topic(""))
    client = messaging.get_rpc_client(transport, target, serializer=Serializer(), timeout=60)
    for line in sys.stdin:
        print(json.dumps(call(client, **json.loads(line))), flush=True)


def call(client: Any, version: str, arguments: dict[str, Any]) -> Any:
    try:
        client.prepare(version=version).call(context.admin(), "continue_inspection", **arguments)
    except (messaging.MessagingException, IronicRulesError) as exc:
        return [[cls.__name__ for cls in type(exc).__mro__], str(exc)]
    return None


if __name__ == "__main__":
    main()
