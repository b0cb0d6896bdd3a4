"""Requests that an agent does not answer: a step waits for the next heartbeat and asks again, for a bounded time."""

from __future__ import annotations

import datetime
import functools
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from oslo_log import log

from ironic_rules.db import clock
from ironic_rules.exceptions import AgentSilent, IronicRulesError
from ironic_rules.models import states
from ironic_rules.models.internal_keys import AGENT_SILENT_SINCE
from ironic_rules.models.task import Task

LOG = log.getLogger(__name__)



class _Configured(Protocol):
    @property
    def conf(self) -> Any:
        """The options."""


_Interface = TypeVar("_Interface", bound=_Configured)
_P = ParamSpec("_P")
_Method = Callable[Concatenate[_Interface, Task, _P], str | None]


def tolerated(method: _Method[_Interface, _P]) -> _Method[_Interface, _P]:
    """Let a method that requests something of the agent wait while there is no answer.

    The method must be safe to repeat, even if the agent has received the request. The wait ends with the next
    heartbeat; after ``[deploy]agent_silence_timeout`` seconds without any answer, the method fails.
    """
    @functools.wraps(method)
    def wrapper(self: _Interface, task: Task, *args: _P.args, **kwargs: _P.kwargs) -> str | None:
        try:
            ends = method(self, task, *args, **kwargs)
        except AgentSilent as exc:
            _check_time(task, exc, self.conf.deploy.agent_silence_timeout)
            LOG.warning("Node %s: %s The request is repeated after the next heartbeat.", task.node.uuid, exc)
            return states.DEPLOYWAIT
        if task.context.agent_token:  # otherwise nothing was requested
            task.node.driver_internal_info.pop(AGENT_SILENT_SINCE, None)
        return ends

    return wrapper


def _check_time(task: Task, error: AgentSilent, timeout_s: int) -> None:
    """Check that the agent may still be waited for.

    :raises IronicRulesError: it has not answered for ``timeout_s`` seconds
    """
    now = clock.now()
    since = task.node.driver_internal_info.setdefault(AGENT_SILENT_SINCE, now.isoformat())
    silent_s = (now - datetime.datetime.fromisoformat(since)).total_seconds()
    if silent_s >= timeout_s:
        raise IronicRulesError(f"{error} It has not answered for {silent_s:.0f} s, although it sends heartbeats "
                               f"([deploy]agent_silence_timeout: {timeout_s}).") from error
