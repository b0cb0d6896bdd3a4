"""Rules of phase ``early``: they run before anything is done with a ramdisk's data.

Only the query of the lookup comes before them, because it also reads the revision of the rule set; what it has found is
used after them.
"""

from __future__ import annotations

import threading

from oslo_context import context as oslo_context
from oslo_log import log as logging

from ironic_rules.exceptions import LookupFailed, RuleFailed, Unavailable
from ironic_rules.inspection.payload import Payload
from ironic_rules.inspection.rule_statistics import RuleStatistics
from ironic_rules.models.rejected_reports import EARLY_RULE
from ironic_rules.models.task import Abandoned
from ironic_rules.rules import Facts, RuleRuns, RuleSet
from ironic_rules.text import printable

LOG = logging.getLogger(__name__)

#: Maximum number of threads of a process that have exceeded the deadline and not returned.
MOST_MISSING = 16


class EarlyRules:
    """Runs early rules, each report's in a thread of its own: an action that hangs keeps that one, and no request.

    :param timeout_s: seconds that all early rules may take for a report; 0: no limit, and no thread
    :param statistics: where their runs are counted
    """

    def __init__(self, timeout_s: float, statistics: RuleStatistics | None = None) -> None:
        self._timeout_s = timeout_s
        self._statistics = statistics
        self._lock = threading.Lock()
        self._missing = 0

    def run(self, rules: RuleSet, sent: Payload, node: str | None = None) -> str | None:
        """Run the early rules over ``sent``, whose plugin data they may change.

        :param node: the UUID of the node that a lookup has found, for statistics
        :returns: None; if one of them is broken, why the inspection has to fail: then none of them is run
        :raises LookupFailed: 404, a rule refuses the machine, or has not ended in time
        :raises Unavailable: 503, too many runs have not ended
        """
        try:
            rules.check("early", None)
        except RuleFailed as exc:
            self._count(RuleRuns(failure=exc.facts["rule"]), node)
            return printable(exc)
        if not rules.has("early"):
            return None
        runs = None if self._statistics is None else self._statistics.begin()
        facts = Facts(None, sent.inventory, sent.plugin_data, runs=runs)
        try:
            if self._timeout_s:
                self._run_in_time(rules, facts, node)
            else:
                rules.run("early", facts)
            self._count(runs, node)
        except RuleFailed as exc:
            self._count(runs, node)
            raise LookupFailed.because(printable(exc), EARLY_RULE) from exc
        finally:
            for level, text in list(facts.messages):
                LOG.log(getattr(logging, level.upper(), logging.INFO), "Early inspection rule: %s", printable(text))
        return None

    def _count(self, runs: RuleRuns | None, node: str | None) -> None:
        if self._statistics is not None and runs is not None:
            self._statistics.add(runs, node=node)

    def _run_in_time(self, rules: RuleSet, facts: Facts, node: str | None) -> None:
        with self._lock:
            if self._missing >= MOST_MISSING:
                raise Unavailable
        work = _Work(rules, facts)
        work.start()
        if work.ended.wait(self._timeout_s):
            # It knows the frames of the thread, and soon this one, in which the work would still know it: a cycle that
            # keeps the report in memory until the garbage collector runs.
            error, work.error = work.error, None
            try:
                if error is not None:
                    raise error
            finally:
                del error
            return
        # Whatever it does now. Between two actions, the thread ends with the next one.
        while not facts.early_watch.abandon(doing := facts.early_watch.doing):
            pass
        with self._lock:
            self._missing += 1
            missing = self._missing
        threading.Thread(target=self._await, args=(work,), name="early-rules-late", daemon=True).start()
        reason = f"it has not ended within {self._timeout_s:g} seconds ([inspection_rules]early_timeout)"
        failure = f"the early rules: {reason}"
        if doing is not None:
            error = doing[1](*doing[2:], reason)
            failure = printable(error)
            # The notes of the thread are not read: it may still add some.
            if isinstance(error, RuleFailed):
                self._count(RuleRuns(failure=error.facts["rule"]), node)
        LOG.error("%s. Its thread cannot be ended. Of such threads, %d have not returned; with %d, reports are refused",
                  failure.rstrip("."), missing, MOST_MISSING)
        raise LookupFailed.because(failure, EARLY_RULE)

    def _await(self, work: _Work) -> None:
        work.join()
        with self._lock:
            self._missing -= 1


class _Work(threading.Thread):
    """A run of the early rules, with the request's context for the log."""

    def __init__(self, rules: RuleSet, facts: Facts) -> None:
        super().__init__(name="early-rules", daemon=True)
        self._rules = rules
        self._facts = facts
        self._context = oslo_context.get_current()
        self.ended = threading.Event()
        self.error: BaseException | None = None

    def run(self) -> None:
        if self._context is not None:
            self._context.update_store()
        try:
            self._rules.run("early", self._facts)
        except Abandoned:  # the request was answered before
            pass
        except BaseException as exc:  # noqa: BLE001  (raised again in the thread of the request)
            self.error = exc
        finally:
            self.ended.set()
