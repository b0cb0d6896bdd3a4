"""Tasks of a BMC: what it does in the background after a request, and how it tells that it has ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from ironic_rules.exceptions import HardwareFailed
from ironic_rules.models.documents import JSON
from ironic_rules.text import printable

ACCEPTED = 202
#: ``TaskState`` of a failed task, and of one that has ended without saying so.
_FAILED = frozenset({"Exception", "Killed", "Cancelled", "Interrupted"})
_ENDED = frozenset({"Completed"})


def location(reply: Any) -> str | None:
    """Return the path of the task that a reply (of sushy's connector) has begun; None if everything is done.

    :raises ValueError: there is a task, and it has no location
    """
    if reply.status_code != ACCEPTED:
        return None
    found = reply.headers.get("Location") or (reply.json().get("@odata.id") if reply.content else None)
    if not isinstance(found, str):
        raise ValueError("a task has no location")
    return urlsplit(found).path


def is_running(node: str, name: str, status: int, found: Mapping[str, Any]) -> bool:
    """Return whether a task, which the BMC still knows, has not ended yet.

    :param node: UUID of the node, and ``name`` what the task does, for the error
    :param status: HTTP status of the task, and ``found`` its JSON
    :raises HardwareFailed: it has failed
    """
    state = found.get("TaskState")
    if state in _FAILED or (state in _ENDED and found.get("TaskStatus") == "Critical"):
        raise HardwareFailed(node=node, reason=f"{name} failed: its task ended as {state}{_messages(found)}.")
    return state not in _ENDED and (status == ACCEPTED or isinstance(state, str))


def _messages(found: Mapping[str, JSON]) -> str:
    """Return what a task (JSON) says about its failure."""
    messages = found.get("Messages")
    texts = [str(message["Message"]) for message in (messages if isinstance(messages, list) else ())
             if isinstance(message, dict) and message.get("Message")]
    return printable(": " + " ".join(texts), 300).rstrip(".") if texts else ""
