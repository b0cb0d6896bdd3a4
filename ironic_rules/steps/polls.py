"""What conductors poll while hardware carries out a step by itself: kept in the node, so any conductor can continue.

A poll ends with an outcome, which is stored together with the event that resumes the procedure.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ironic_rules.models.documents import JSONObject
from ironic_rules.models.internal_keys import STEP_POLL

#: In the place of an interface: nothing is asked, the step ends at the time ``until``.
CLOCK = "clock"
_RAMDISK = "awaits_ramdisk"


@dataclass(frozen=True, slots=True)
class Poll:
    """What is polled for one node.

    ``interface`` is the kind that polls, or ``CLOCK``; ``what`` is its own description of what to wait for (JSON).
    ``until`` is the time after which the step fails, by the database's clock, and ``limit`` a text about it, such as
    ``1800 seconds, [redfish]configuration_timeout``. ``begun_at`` identifies the poll. ``ended`` says that there is an
    outcome, and ``error`` is that of a failure. ``awaits_ramdisk`` says that the step does not end before a heartbeat
    of the ramdisk, which is not polled for: it may come before the outcome or after it.
    """

    interface: str
    what: Mapping[str, Any]
    begun_at: str
    until: datetime.datetime
    limit: str
    ended: bool = False
    error: str | None = None
    awaits_ramdisk: bool = False

    def is_same(self, other: Poll | None) -> bool:
        """Return whether both are the same poll, which has not ended."""
        return other is not None and other.begun_at == self.begun_at and not other.ended


def begin(internal: JSONObject, interface: str, what: Mapping[str, Any], now: datetime.datetime, timeout_s: float,
          limit: str, *, awaits_ramdisk: bool = False) -> None:
    """Store in ``driver_internal_info`` what to poll from now on.

    :param now: the time of the database's clock
    """
    internal[STEP_POLL] = {"interface": interface, "what": dict(what), "begun_at": now.isoformat(),
                     "until": (now + datetime.timedelta(seconds=timeout_s)).isoformat(), "limit": limit}
    note_ramdisk(internal, awaited=awaits_ramdisk)


def note_ramdisk(internal: JSONObject, *, awaited: bool) -> None:
    """Store whether the step that is polled for awaits a heartbeat of the ramdisk, too."""
    internal[STEP_POLL] = {**{key: value for key, value in internal[STEP_POLL].items() if key != _RAMDISK},
                     **({_RAMDISK: True} if awaited else {})}


def pending(internal: Mapping[str, Any]) -> Poll | None:
    """Return what is polled according to ``driver_internal_info``; None if nothing is, or if it is not readable."""
    stored = internal.get(STEP_POLL)
    if not isinstance(stored, dict):
        return None
    outcome = stored.get("outcome")
    try:
        return Poll(stored["interface"], stored["what"], stored["begun_at"],
                    datetime.datetime.fromisoformat(stored["until"]), stored["limit"], outcome is not None,
                    (outcome or {}).get("error"), stored.get(_RAMDISK) is True)
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def end(internal: Mapping[str, Any], error: str | None) -> JSONObject:
    """Return ``driver_internal_info`` with the outcome of its poll: ``error``, or None if the hardware is done."""
    return {**internal, STEP_POLL: {**internal[STEP_POLL], "outcome": {"error": error}}}


def overdue(poll: Poll, reason: str) -> str:
    """Return the error of a poll whose time is over.

    :param reason: what it was still waiting for, or why the hardware could not be asked
    """
    return f"it was not completed in time ({poll.limit}): {reason}"
