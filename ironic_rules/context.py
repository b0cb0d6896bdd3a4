"""The request context: the caller of a request, created from headers by the API and passed over RPC."""

from __future__ import annotations

from typing import Any

from oslo_context import context


class RequestContext(context.RequestContext):
    """oslo.context's request context; ``is_public_api`` marks requests that need no authentication."""

    #: The token of the ramdisk that sent this heartbeat. It is not in ``to_dict()``, so it never leaves this process.
    agent_token: str | None = None

    def __init__(self, is_public_api: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.is_public_api = is_public_api

    def to_policy_values(self) -> Any:
        """Return what policies can check: as in Ironic, also the name of the project."""
        # In a plain dictionary: what is added to that of oslo.context counts as deprecated.
        return {**super().to_policy_values(), "project_name": self.project_name}

    def to_dict(self) -> dict[str, Any]:
        values = super().to_dict()
        values["is_public_api"] = self.is_public_api
        return values

    @classmethod
    def from_dict(cls, values: dict[str, Any], **kwargs: Any) -> RequestContext:
        kwargs.setdefault("is_public_api", values.get("is_public_api", False))
        return super().from_dict(values, **kwargs)


def admin(request_id: str | None = None) -> RequestContext:
    """Return the context in which the service itself acts."""
    return RequestContext(is_admin=True, overwrite=False, request_id=request_id, roles=["admin"], system_scope="all")
