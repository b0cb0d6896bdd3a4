"""Client of the command API of ironic-python-agent, which a ramdisk serves at the ``callback_url`` of its heartbeats.

One command runs at a time; the agent keeps the results of all commands, in order, until it stops.
"""

from __future__ import annotations

import ssl
from collections.abc import Collection, Mapping
from typing import Any

from ironic_rules import context
from ironic_rules.exceptions import AgentSilent, IronicRulesError
from ironic_rules.hardware import destinations
from ironic_rules.hardware.destinations import Destination, NoAddress
from ironic_rules.hardware.waiting import RequestDeadline
from ironic_rules.models import json_text, urls
from ironic_rules.models.documents import JSON, JSONObject
from ironic_rules.models.urls import Network
from ironic_rules.text import printable

RUNNING, SUCCEEDED = "RUNNING", "SUCCEEDED"
TIMEOUT_S = 60.0
#: Maximum size of a response.
MAX_ANSWER_BYTES = 16 * 2**20
_MAX_TEXT = 1024


class AgentClient:
    """Calls the agent of one node. Ignores the environment (proxies, credentials), and follows no redirects."""

    def __init__(self, url: str, token: str, denied: Collection[Network], certificate: str | None = None,
                 timeout_s: float = TIMEOUT_S) -> None:
        """Create a client; no request is sent yet.

        :param url: ``callback_url`` of a heartbeat;  token: that of the same heartbeat
        :param denied: networks in which no agent may be
        :param certificate: the agent's own certificate, in PEM, if it has one (``agent_verify_ca``)
        :raises IronicRulesError: the certificate is invalid
        """
        try:
            self._tls = ssl.create_default_context(cadata=certificate or None)
        except (ssl.SSLError, ValueError) as exc:
            raise IronicRulesError("The certificate of the agent cannot be read.") from exc
        self._url = f"{url.rstrip('/')}/v1/commands/"
        self._token = token
        self._denied = denied
        self._timeout_s = timeout_s

    def commands(self) -> list[JSONObject]:
        """Return all commands, oldest first: dicts with ``id``, ``command_name``, ``command_status``, ….

        :raises AgentSilent: the agent does not respond;  IronicRulesError: its response is invalid
        """
        commands = self._call("GET").get("commands")
        if not isinstance(commands, list) or not all(isinstance(command, dict) for command in commands):
            raise IronicRulesError("The agent's list of commands is invalid.")
        return commands

    def start(self, name: str, parameters: Mapping[str, JSON]) -> JSONObject:
        """Start a command, e.g. ``deploy.execute_deploy_step``; return it as :meth:`commands` does.

        :raises AgentSilent: the agent does not respond; it may have received the command
        :raises IronicRulesError: the agent refuses it, or its response is invalid
        """
        return self._call("POST", {"name": name, "params": dict(parameters)})

    def run(self, name: str, parameters: Mapping[str, JSON]) -> Any:
        """Run a synchronous command, and return its result.

        :raises IronicRulesError: it failed, or as for :meth:`start`
        """
        command = self.start(name, parameters)
        if command.get("command_status") != SUCCEEDED:
            raise IronicRulesError(f"The agent's command {name} failed: {failure(command)}")
        return command.get("command_result")

    def _call(self, method: str, body: JSON = None) -> JSONObject:
        import httpx  # most conductors start without any deployment, and it takes 5 MiB

        agent = self._destination()
        limit = RequestDeadline(self._timeout_s)
        try:
            with (
                limit, destinations.client(agent, self._tls, self._timeout_s) as client,
                # Not compressed: a decoder may read any number of bytes before it returns some.
                client.stream(method, str(agent.url), params={"agent_token": self._token}, json=body,
                              headers={"Accept-Encoding": "identity", **context.request_id_header()},
                              extensions=limit.extensions) as answer,
            ):
                content = bytearray()
                for chunk in answer.iter_raw():
                    content += chunk
                    if len(content) > MAX_ANSWER_BYTES:
                        raise IronicRulesError("The agent's response is too long.")
                result: Any = json_text.parse(content.decode())
                status = answer.status_code
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as exc:
            if limit.is_over:
                raise AgentSilent("The agent's response takes too long.") from None
            if isinstance(exc, httpx.TransportError) and not isinstance(exc, httpx.UnsupportedProtocol):
                raise AgentSilent(reason=type(exc).__name__) from None
            # The text of the error may contain the URL, and the URL the token.
            raise IronicRulesError(f"The agent does not respond as expected ({type(exc).__name__}).") from None
        if status >= 400:
            text = result.get("faultstring") if isinstance(result, dict) else None
            raise IronicRulesError(f"The agent responds with status {status}: {printable(text, _MAX_TEXT)}")
        if not isinstance(result, dict):
            raise IronicRulesError("The agent's response is not an object.")
        return result

    def _destination(self) -> Destination:
        """Return where the agent is.

        :raises AgentSilent: its name has no address;  IronicRulesError: its URL is refused
        """
        try:
            return destinations.find(urls.parse(self._url), self._denied)
        except NoAddress as exc:
            raise AgentSilent(reason=str(exc)) from None
        except ValueError as exc:
            raise IronicRulesError(f"The agent is not called: its URL {exc}.") from None


def failure(command: Mapping[str, JSON]) -> str:
    """Return why a command failed, as a human-readable text."""
    error = command.get("command_error")
    if isinstance(error, dict):
        error = error.get("details") or error.get("message") or error
    return f"{printable(error, _MAX_TEXT)} ({printable(command.get('command_status'), 64)})"
