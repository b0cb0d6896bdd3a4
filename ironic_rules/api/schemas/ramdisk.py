"""Bodies of the endpoints for ramdisks, and the version in which each field of a heartbeat was added."""

from __future__ import annotations

from ironic_rules.api import schema, versions
from ironic_rules.models import urls
from ironic_rules.models.documents import JSON


class AgentUrl(schema.HttpUrl):
    """The URL of an agent: a host, optionally a port, nothing else. The service adds the paths of its requests."""

    def __init__(self) -> None:
        super().__init__(1024)

    def convert(self, value: JSON, where: str, problems: schema.Problems) -> str:
        url = urls.parse(super().convert(value, where, problems))
        if url.user is not None or url.rest not in ("", "/"):
            raise ValueError("must be an HTTP or HTTPS URL of a host, without user, password, path and query")
        return str(url)


#: Any object. ``inspection.payload`` knows what belongs inside.
CONTINUE_INSPECTION = schema.Map()

HEARTBEAT = schema.Object({
    "callback_url": AgentUrl(),
    "agent_token": schema.Text(max_length=255),
    "agent_version": schema.Text(max_length=255, nullable=True),
    "agent_verify_ca": schema.Text(max_length=64 * 1024, multiline=True, nullable=True),
    "agent_status": schema.Enum("start", "end", "error", nullable=True),
    "agent_status_message": schema.Text(max_length=4096, multiline=True, nullable=True),
}, required=("callback_url", "agent_token"))

#: Field -> first minor version that accepts it.
HEARTBEAT_SINCE = {
    "agent_version": versions.AGENT_VERSION, "agent_verify_ca": versions.AGENT_VERIFY_CA,
    "agent_status": versions.AGENT_STATUS, "agent_status_message": versions.AGENT_STATUS,
}
