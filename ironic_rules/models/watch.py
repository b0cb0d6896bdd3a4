"""What a worker is doing: code of a plug-in may never return, so that another thread has to notice it.

The worker only notes what it begins, which costs little; the watchdog (``conductor.worker_pool``) has the clock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

#: The kinds of code with a deadline, and the options with their seconds.
HOOK, ACTION, STEP = "hook", "action", "step"
#: What is done between them, such as replies of machines and of the database.
WORK = "work"
OPTIONS: Mapping[str, str] = {
    WORK: "[conductor]work_timeout",
    HOOK: "[inspector]hook_timeout", ACTION: "[inspection_rules]action_timeout", STEP: "[conductor]step_timeout"}

#: A kind, a function that returns the error of something that did not end in time, and its arguments before the reason.
Doing: TypeAlias = tuple[Any, ...]


class Abandoned(BaseException):
    """The work of this thread was given to another one: whatever it still does has no effect. It is never caught."""


def is_signal(error: BaseException) -> bool:
    """Return whether an exception may come from a signal, which is not to be taken for an error of the code it hit."""
    is_error = isinstance(error, (Exception, SystemExit, GeneratorExit))
    return not is_error and threading.current_thread() is threading.main_thread()


class Watch:
    """What one worker is doing. Only its own thread calls :meth:`begin` and :meth:`end`."""

    __slots__ = ("_lock", "doing", "is_abandoned", "on_overdue")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.doing: Doing | None = None
        self.is_abandoned = False
        #: called in another thread with the error, after this one was abandoned; None: it is not watched
        self.on_overdue: Callable[[Exception], None] | None = None

    def begin(self, kind: str, failure: Callable[..., Exception], *subject: Any) -> None:
        """Note what begins now, instead of what was noted before.

        :param failure: returns the error if it does not end in time; called with ``subject`` and the reason
        :raises Abandoned: what was noted before ended too late
        """
        if self.is_abandoned:
            raise Abandoned
        self.doing = (kind, failure, *subject)

    def again(self) -> None:
        """Note that the same begins once more: with its next item.

        :raises Abandoned: the last one ended too late
        """
        if self.is_abandoned:
            raise Abandoned
        if self.doing is not None:
            self.doing = (*self.doing,)

    def end(self) -> None:
        """Note that it has ended: from now on its results count.

        :raises Abandoned: too late
        """
        with self._lock:
            if self.is_abandoned:
                raise Abandoned
            self.doing = None

    def abandon(self, doing: Doing | None) -> bool:
        """Give up the worker if it is still doing that; return whether it is."""
        with self._lock:
            if self.doing is doing:
                self.is_abandoned = True
            return self.is_abandoned


def overdue(doing: Doing, limit_s: float) -> Exception:
    """Return the error of something that has not ended within ``limit_s`` seconds."""
    kind, failure, *subject = doing
    error: Exception = failure(*subject, f"it has not ended within {limit_s:g} seconds ({OPTIONS[kind]})")
    return error
