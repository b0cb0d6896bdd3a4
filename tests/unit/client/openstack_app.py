"""The parts of a running ``openstack`` that commands use, and a service that gives predefined answers."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

from ironicclient import exc
from ironicclient.v1.inspection_rule import InspectionRuleManager

Answer = Callable[[str, str, Any], Any]


class Connection:
    """Has python-ironicclient's ``json_request``.

    :param answer: gets method, URL and body; returns the body of the reply or raises
    :param headers: of each reply, unless ``reply_headers`` is changed
    """

    conflict_max_retries = 5

    def __init__(self, answer: Answer, headers: Mapping[str, str] | None = None) -> None:
        self._answer = answer
        self.reply_headers = headers or {}
        self.requests: list[tuple[str, str, Any]] = []
        #: Headers of the requests for which our code sets any.
        self.headers: list[dict[str, str]] = []

    def json_request(self, method: str, url: str, body: Any = None, headers: dict[str, str] | None = None,
                     **other: Any) -> tuple[Any, Any]:
        self.requests.append((method, url, body))
        if headers is not None:
            self.headers.append(headers)
        reply = self._answer(method, url, body)
        return SimpleNamespace(headers=self.reply_headers), reply


def app(connection: Connection | None) -> Any:
    """Return an application; without a connection it is one without python-ironicclient."""
    clients = SimpleNamespace()
    if connection is not None:
        clients.baremetal = SimpleNamespace(http_client=connection, inspection_rule=InspectionRuleManager(connection))
    return SimpleNamespace(client_manager=clients, stdout=io.StringIO(), NAME="openstack")


def refusal(text: str, status: int = 400) -> exc.ClientException:
    """Return what python-ironicclient raises for a fault."""
    return exc.from_response(SimpleNamespace(status_code=status, headers={"Content-Type": "application/json"}), text)


def run(command: type[Any], connection: Connection | None, *arguments: str) -> tuple[int, str]:
    """Run a command; return its status and what it printed."""
    running = app(connection)
    ready = command(running, None)
    return ready.run(ready.get_parser("openstack").parse_args(arguments)), running.stdout.getvalue()
