"""The command API of ironic-python-agent, as a ramdisk serves it at the ``callback_url`` of its heartbeats.

One command runs at a time; the agent keeps the results of all of them, in their order, until it ends.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Mapping
from typing import Any

import httpx

from ironic_rules.exceptions import IronicRulesError
from ironic_rules.text import printable

RUNNING, SUCCEEDED = "RUNNING", "SUCCEEDED"
TIMEOUT_S = 60.0
#: Longest answer that is read.
MAX_ANSWER_BYTES = 16 * 2**20
_MAX_TEXT = 1024


class AgentClient:
    """Talks to the agent of one node. Takes nothing from the environment, and follows no redirects."""

    def __init__(self, url: str, token: str, certificate: str | None = None, timeout_s: float = TIMEOUT_S) -> None:
        """Prepare; nothing is sent yet.

        :param url: ``callback_url`` of a heartbeat;  token: of the same one
        :param certificate: the agent's own, in PEM, if it has one (``agent_verify_ca``)
        :raises IronicRulesError: the certificate is none
        """
        try:
            self._tls = ssl.create_default_context(cadata=certificate or None)
        except (ssl.SSLError, ValueError) as exc:
            raise IronicRulesError("The certificate of the agent cannot be read.") from exc
        self._url = f"{url.rstrip('/')}/v1/commands/"
        self._token = token
        self._timeout_s = timeout_s

    def commands(self) -> list[dict[str, Any]]:
        """Return all commands, oldest first: dicts with ``id``, ``command_name``, ``command_status``, ….

        :raises IronicRulesError: the agent does not answer as an agent does
        """
        found = self._call("GET").get("commands")
        if not isinstance(found, list) or not all(isinstance(command, dict) for command in found):
            raise IronicRulesError("The agent's list of commands is none.")
        return found

    def start(self, name: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Start a command, e.g. ``deploy.execute_deploy_step``; return it as :meth:`commands` does.

        :raises IronicRulesError: the agent refuses it, or does not answer as an agent does
        """
        return self._call("POST", {"name": name, "params": dict(parameters)})

    def run(self, name: str, parameters: Mapping[str, Any]) -> Any:
        """Run a command that ends at once, and return its result.

        :raises IronicRulesError: it failed; as :meth:`start`
        """
        command = self.start(name, parameters)
        if command.get("command_status") != SUCCEEDED:
            raise IronicRulesError(f"The agent's command {name} failed: {failure(command)}")
        return command.get("command_result")

    def _call(self, method: str, body: Any = None) -> dict[str, Any]:
        # httpx bounds each read, and not all of them: an agent that sends byte after byte must end too.
        deadline = time.monotonic() + self._timeout_s
        try:
            with (
                httpx.Client(verify=self._tls, trust_env=False, timeout=self._timeout_s) as client,
                # Not compressed: a decoder may take in bytes without end before it gives out any.
                client.stream(method, self._url, params={"agent_token": self._token}, json=body,
                              headers={"Accept-Encoding": "identity"}) as answer,
            ):
                content = b""
                for chunk in answer.iter_raw():
                    content += chunk
                    if len(content) > MAX_ANSWER_BYTES:
                        raise IronicRulesError("The agent's answer is too long.")
                    if time.monotonic() > deadline:
                        raise IronicRulesError("The agent's answer takes too long.")
                found: Any = httpx.Response(200, content=content).json()
                status = answer.status_code
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as exc:
            # Its text may have the URL, and that the token.
            raise IronicRulesError(f"The agent does not answer as it should ({type(exc).__name__}).") from None
        if status >= 400:
            text = found.get("faultstring") if isinstance(found, dict) else None
            raise IronicRulesError(f"The agent answers with status {status}: {printable(text, _MAX_TEXT)}")
        if not isinstance(found, dict):
            raise IronicRulesError("The agent's answer is no object.")
        return found


def failure(command: Mapping[str, Any]) -> str:
    """Return why a command failed, as a text for people."""
    error = command.get("command_error")
    if isinstance(error, dict):
        error = error.get("details") or error.get("message") or error
    return f"{printable(error, _MAX_TEXT)} ({printable(command.get('command_status'), 64)})"
