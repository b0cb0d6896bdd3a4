"""Procedures, operations that run steps one after the other, such as a deployment, and the polls of their steps.

Conductors poll while hardware carries out a step by itself. A poll is kept in the node, so any conductor can continue.
It ends with an outcome, which is stored together with the event that resumes the procedure.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ironic_rules.models import states
from ironic_rules.models.documents import JSON, JSONObject
from ironic_rules.models.internal_keys import AGENT_STAYS, AGENT_URL, BOOT_LEFT, STEP_POLL


@dataclass(frozen=True, slots=True)
class Procedure:
    """An operation that runs steps. Its progress is kept in a field of the node and in ``driver_internal_info``.

    :ivar name: the prefix of that field and of the keys, e.g. ``deploy``
    :ivar noun: how texts call the operation
    :ivar state: the state of the node while a conductor runs its steps
    :ivar wait_state: the state while the machine continues a step
    :ivar hold_state: the state while a ``hold`` step stops it
    :ivar boot_step: the step of the deploy interface that boots the ramdisk, if it has one with steps of its own
    :ivar end_step: the step of the deploy interface that ends the ramdisk after the last step; None: the procedure has
        steps of its own for that
    """

    name: str
    noun: str
    state: str
    wait_state: str
    hold_state: str
    boot_step: str
    end_step: str | None = None

    @property
    def request_field(self) -> str:
        """The field of requests with the steps to run, e.g. ``clean_steps``."""
        return f"{self.name}_steps"

    @property
    def step_field(self) -> str:
        """The node's field with the current step."""
        return f"{self.name}_step"

    @property
    def steps_key(self) -> str:
        """Key of the list of all runs, fixed when the procedure begins."""
        return f"{self.name}_steps"

    @property
    def index_key(self) -> str:
        """Key of the position of the run that is next or in progress."""
        return f"{self.name}_step_index"

    @property
    def state_key(self) -> str:
        """Key that is present once that run has begun."""
        return f"{self.name}_step_state"

    @property
    def requested_key(self) -> str:
        """Key of the steps that were requested in addition to the templates."""
        return f"user_{self.name}_steps"

    @property
    def left_out_key(self) -> str:
        """Key of the names of the steps that were requested with priority 0, such as ``raid.create_configuration``."""
        return f"{self.name}_steps_left_out"

    @property
    def restarted_key(self) -> str:
        """Key that is present if the procedure has begun again because the agent has changed."""
        return f"{self.name}_steps_restarted"

    @property
    def ramdisk_key(self) -> str:
        """Key of the steps that the ramdisk has reported, e.g. ``agent_clean_steps``: present while it runs."""
        return f"agent_{self.name}_steps"

    @property
    def no_ramdisk_key(self) -> str:
        """Key that is present if the request excludes the ramdisk, e.g. ``cleaning_disable_ramdisk``."""
        return f"{self.state}_disable_ramdisk"

    def columns(self, internal: Mapping[str, JSON], requested: Iterable[Mapping[str, JSON]],
                disable_ramdisk: bool = False) -> JSONObject:
        """Return the columns of a node for which the procedure is requested.

        :param internal: its ``driver_internal_info``
        :param requested: the steps of the request
        :param disable_ramdisk: no ramdisk is booted for them
        """
        remaining = self.without_progress(internal)
        remaining.pop(AGENT_STAYS, None)
        if steps := [dict(step) for step in requested]:
            remaining[self.requested_key] = steps
        if disable_ramdisk:
            remaining[self.no_ramdisk_key] = True
        return {self.step_field: {}, "driver_internal_info": remaining}

    def without_progress(self, internal: Mapping[str, JSON]) -> JSONObject:
        """Return ``driver_internal_info`` without the keys of the procedure.

        The address of an agent remains that keeps its machine after the procedure.
        """
        own = {self.steps_key, self.index_key, self.state_key, self.requested_key, self.left_out_key,
               self.ramdisk_key, self.no_ramdisk_key, self.restarted_key, STEP_POLL, BOOT_LEFT}
        if AGENT_STAYS not in internal:
            own.add(AGENT_URL)
        return {key: value for key, value in internal.items() if key not in own}


DEPLOYMENT = Procedure("deploy", "deployment", states.DEPLOYING, states.DEPLOYWAIT, states.DEPLOYHOLD, "deploy")
CLEANING = Procedure("clean", "cleaning", states.CLEANING, states.CLEANWAIT, states.CLEANHOLD, "prepare_cleaning",
                     "tear_down_cleaning")
SERVICE = Procedure("service", "servicing", states.SERVICING, states.SERVICEWAIT, states.SERVICEHOLD,
                    "prepare_service", "tear_down_service")
ALL = (DEPLOYMENT, CLEANING, SERVICE)

#: States that a step returns if the machine continues it; each of them has that effect in every procedure.
WAIT_STATES = frozenset(procedure.wait_state for procedure in ALL)

_BY_STATE = {state: procedure for procedure in ALL
             for state in (procedure.state, procedure.wait_state, procedure.hold_state)}


def of_state(provision_state: str) -> Procedure | None:
    """Return the procedure that is under way in that state; None if there is none."""
    return _BY_STATE.get(provision_state)


def without_progress(internal: Mapping[str, JSON]) -> JSONObject:
    """Return ``driver_internal_info`` without the keys of any procedure."""
    remaining = dict(internal)
    for procedure in ALL:
        remaining = procedure.without_progress(remaining)
    return remaining


#: In the place of an interface: nothing is asked, the step ends at the time ``until``.
POLL_CLOCK = "clock"
_RAMDISK = "awaits_ramdisk"


@dataclass(frozen=True, slots=True)
class Poll:
    """The poll of one node.

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


def begin_poll(internal: JSONObject, interface: str, awaited: Mapping[str, object], now: datetime.datetime,
               timeout_s: float, limit: str, *, awaits_ramdisk: bool = False) -> None:
    """Store in ``driver_internal_info`` what to poll from now on.

    :param now: the time of the database's clock
    """
    internal[STEP_POLL] = {"interface": interface, "what": dict(awaited), "begun_at": now.isoformat(),
                     "until": (now + datetime.timedelta(seconds=timeout_s)).isoformat(), "limit": limit}
    note_ramdisk(internal, awaited=awaits_ramdisk)


def note_ramdisk(internal: JSONObject, *, awaited: bool) -> None:
    """Store whether the step that is polled for awaits a heartbeat of the ramdisk, too."""
    internal[STEP_POLL] = {**{key: value for key, value in internal[STEP_POLL].items() if key != _RAMDISK},
                     **({_RAMDISK: True} if awaited else {})}


def pending_poll(internal: Mapping[str, object]) -> Poll | None:
    """Return the poll in ``driver_internal_info``; None if there is none, or if it is not readable."""
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


def end_poll(internal: Mapping[str, Any], error: str | None) -> JSONObject:
    """Return ``driver_internal_info`` with the outcome of its poll: ``error``, or None if the hardware is done."""
    return {**internal, STEP_POLL: {**internal[STEP_POLL], "outcome": {"error": error}}}


def overdue_poll(poll: Poll, reason: str) -> str:
    """Return the error of a poll whose time is over.

    :param reason: what it was still waiting for, or why the hardware could not be asked
    """
    return f"it was not completed in time ({poll.limit}): {reason}"
