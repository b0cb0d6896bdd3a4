"""Where dry runs run: in threads of their own, few at a time, each with a deadline.

The thread of the request waits, at most until the deadline. The dry run itself looks at the clock between its steps and
ends soon after; a hook or an action of another package that never ends keeps its place.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from oslo_log import log as logging

from ironic_rules.exceptions import ConfigurationError, DryRunTooLong, IronicRulesError, TooManyDryRuns, Unavailable
from ironic_rules.inspection.pipeline import Pipeline
from ironic_rules.models.task import Abandoned

LOG = logging.getLogger(__name__)

T = TypeVar("T")
#: Dry runs at a time in one process.
MOST = 4


class DryRuns:
    """Runs work with a deadline. One per process; thread-safe.

    :param timeout_s: seconds that a dry run may take
    :param make_pipeline: called once, when it is needed: the API runs without the packages of hooks as well
    """

    def __init__(self, timeout_s: float, make_pipeline: Callable[[], Pipeline]) -> None:
        self._timeout_s = timeout_s
        self._places = threading.BoundedSemaphore(MOST)
        self._make_pipeline = functools.cache(make_pipeline)

    def pipeline(self) -> Pipeline:
        """Return the hooks as the conductor runs them.

        :raises Unavailable: 503, they cannot be loaded on this host
        """
        try:
            return self._make_pipeline()
        except ConfigurationError as error:
            raise Unavailable(f"This API cannot do dry runs: {error}") from error

    def run(self, work: Callable[[Callable[[], None]], T]) -> T:
        """Return the result of ``work``, which gets the function to be called between its steps.

        :raises TooManyDryRuns: 503, as many as possible are in progress
        :raises DryRunTooLong: 400, it takes longer than it may
        """
        deadline = time.monotonic() + self._timeout_s
        if not self._places.acquire(timeout=self._timeout_s / 2):
            raise TooManyDryRuns(most=MOST)
        result: list[Any] = []
        ended = threading.Event()

        def tick() -> None:
            if time.monotonic() > deadline:
                raise Abandoned

        def run() -> None:
            try:
                result[:] = [None, work(tick)]
            except IronicRulesError as error:
                result[:] = [error]
            except Abandoned:
                pass
            except BaseException as error:  # of a plug-in, or a defect: the request reports it, not the thread
                LOG.exception("A dry run failed")
                result[:] = [error if isinstance(error, Exception) else RuntimeError(type(error).__name__)]
            finally:
                self._places.release()
                ended.set()

        threading.Thread(target=run, name="dry-run", daemon=True).start()
        if not ended.wait(deadline - time.monotonic()) or not result:
            raise DryRunTooLong(seconds=self._timeout_s)
        if result[0] is not None:
            raise result[0]
        done: T = result[1]
        return done
