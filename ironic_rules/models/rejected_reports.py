"""Rejected reports: what the journal keeps of them."""

from __future__ import annotations

import datetime
import hashlib
from dataclasses import dataclass, field
from typing import Protocol

from ironic_rules.models.documents import JSONObject

#: Reasons for rejecting a report.
REASONS = ("unknown", "discovery off", "wrong state", "several nodes", "bmc conflict", "not enrolled", "over its limit",
           "early rule", "malformed", "other")
(UNKNOWN, DISCOVERY_OFF, WRONG_STATE, SEVERAL_NODES, BMC_CONFLICT, NOT_ENROLLED, OVER_LIMIT, EARLY_RULE, MALFORMED,
 OTHER) = REASONS


@dataclass(frozen=True, slots=True)
class RejectedReport:
    """One rejected report.

    :ivar reason: one of ``REASONS``;  ``detail`` says more
    :ivar source: the address that it came from
    :ivar node_uuid: as the machine named itself
    :ivar report: what the machine sent, if it is to be kept;  ``size``: of that in bytes
    """

    reason: str
    detail: str
    source: str | None
    at: datetime.datetime
    node_uuid: str | None = None
    macs: tuple[str, ...] = ()
    bmc_addresses: tuple[str, ...] = ()
    report: JSONObject | None = field(default=None, repr=False)
    size: int = 0

    @property
    def machine(self) -> str:
        """The key of reports of one machine that were rejected for one reason."""
        sender = "\0".join((*sorted(self.macs), *sorted(self.bmc_addresses))) or self.node_uuid or self.source or ""
        return hashlib.blake2b(f"{self.reason}\0{sender}".encode("utf-8", "replace"), digest_size=32).hexdigest()


class JournalEntry(Protocol):
    """A row of the journal: the reports of a machine that were rejected for one reason."""

    id: int
    uuid: str
    created_at: datetime.datetime
    seen_at: datetime.datetime
    reason: str
    times: int
    source: str | None
    node_uuid: str | None
    detail: str | None
    macs: list[str]
    bmc_addresses: list[str]
    nodes: list[JSONObject]
    report: JSONObject | None
