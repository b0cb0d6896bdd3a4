"""The request context: the caller of a request, created from headers by the API and passed over RPC."""

from __future__ import annotations

import contextlib
import contextvars
import hashlib
from collections.abc import Iterator
from typing import Any, NamedTuple

from oslo_context import context


def hashed_token(token: str) -> str:
    """Return the SHA-256 of an agent token in hex. The token is random, so a fast hash is enough."""
    return hashlib.sha256(token.encode()).hexdigest()


class Mark(NamedTuple):
    """By what a repetition of a request is recognized, once a conductor has accepted the first one."""

    #: hexadecimal; one request of a node has it
    digest: str
    #: hexadecimal: another request with the same digest differs here
    content: str
    #: JSON: what the first one was answered with; None: nothing
    answer: dict[str, Any] | None = None


class RequestContext(context.RequestContext):
    """oslo.context's request context; ``is_public_api`` marks requests that need no authentication."""

    #: The token of the ramdisk that sent this heartbeat. It is not in ``to_dict()``, so it never leaves this process.
    agent_token: str | None = None
    #: ISO 8601, by the database's clock: from then on the caller no longer waits, and nothing may begin; None: no limit
    expires_at: str | None = None
    mark: Mark | None = None
    #: the SHA-256 of the token that the ramdisk gets with the reply, for the conductor that accepts its data
    token_hash: str | None = None
    #: the seconds that the API took to find the node of a ramdisk's data, early rules included
    lookup_s: float | None = None
    #: the span of the caller, as headers of W3C
    trace: dict[str, str] | None = None

    def __init__(self, is_public_api: bool = False, source: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.is_public_api = is_public_api
        #: the address that a ramdisk's data came from
        self.source = source

    def to_policy_values(self) -> Any:
        """Return what policies can check: as in Ironic, also the name of the project."""
        # In a plain dictionary: what is added to that of oslo.context counts as deprecated.
        return {**super().to_policy_values(), "project_name": self.project_name}

    def to_dict(self) -> dict[str, Any]:
        values = super().to_dict()
        values["is_public_api"] = self.is_public_api
        if self.expires_at is not None:
            values["expires_at"] = self.expires_at
        if self.mark is not None:
            values["mark"] = self.mark._asdict()
        if self.token_hash is not None:
            values["token_hash"] = self.token_hash
        values["source"] = self.source
        if self.lookup_s is not None:
            values["lookup_s"] = self.lookup_s
        return values

    @classmethod
    def from_dict(cls, values: dict[str, Any], **kwargs: Any) -> RequestContext:
        kwargs.setdefault("is_public_api", values.get("is_public_api", False))
        kwargs.setdefault("source", values.get("source"))
        request = super().from_dict(values, **kwargs)
        request.expires_at = values.get("expires_at")
        request.token_hash = values.get("token_hash")
        request.lookup_s = values.get("lookup_s")
        request.trace = values.get("trace")
        request.mark = Mark(**values["mark"]) if values.get("mark") else None
        return request


def current() -> RequestContext | None:
    """Return the context for which this thread works: its log lines have the request id; None outside of requests."""
    caller: Any = context.get_current()
    return caller  # type: ignore[no-any-return]


def request_id_header() -> dict[str, str]:
    """Return the header that names the request for which this thread works to agents and BMCs; empty without one."""
    caller = current()
    return {} if caller is None or caller.request_id is None else {"X-Openstack-Request-Id": caller.request_id}


def admin(request_id: str | None = None) -> RequestContext:
    """Return the context in which the service itself acts."""
    return RequestContext(is_admin=True, overwrite=False, request_id=request_id, roles=["admin"], system_scope="all")


class Change(NamedTuple):
    """A change of one object, for the audit log.

    :ivar difference: a JSON patch without secrets; None: it is known otherwise
    """

    kind: str
    ident: str
    action: str
    difference: list[dict[str, Any]] | None


_changes: contextvars.ContextVar[list[Change] | None] = contextvars.ContextVar("changes", default=None)


@contextlib.contextmanager
def noting_changes() -> Iterator[list[Change]]:
    """Yield a list that gets what the block changes in this thread."""
    changes: list[Change] = []
    token = _changes.set(changes)
    try:
        yield changes
    finally:
        _changes.reset(token)


def notes_changes() -> bool:
    """Return whether changes of this thread are noted."""
    return _changes.get() is not None


def note_change(change: Change) -> None:
    """Note a change, if changes are noted."""
    changes = _changes.get()
    if changes is not None:
        changes.append(change)


@contextlib.contextmanager
def forgetting_changes() -> Iterator[None]:
    """Forget the changes that the block notes if it raises, because its transaction is rolled back."""
    changes = _changes.get()
    before = 0 if changes is None else len(changes)
    try:
        yield
    except BaseException:  # whatever ends the block, its transaction is rolled back
        if changes is not None:
            del changes[before:]
        raise
