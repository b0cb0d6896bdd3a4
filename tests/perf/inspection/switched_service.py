"""``ironic-rules`` whose history of inspections, statistics, journal, facts and events are switched while it runs.

``python -m tests.perf.inspection.switched_service OPTION...``: each line of its standard input has the names of what is
on from then on. Two processes with the same load differ by more than any of them costs.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import Any

import ironic_rules.cmd  # noqa: F401  (selects the threading backend)
from ironic_rules import service
from ironic_rules.cmd import standalone
from ironic_rules.db import clock, outbox
from ironic_rules.inspection.fact_sets import FactCache, KnownFacts
from ironic_rules.inspection.journal import Journal
from ironic_rules.inspection.rule_statistics import RuleStatistics

_found: dict[str, Any] = {}


def _switch(names: set[str]) -> None:
    conf, statistics = _found["conf"], _found["statistics"]
    conf.set_override("max_entries", 100 if "history" in names else 0, "inspection_history")
    _found["journal"]._max_entries = 100_000 if "journal" in names else 0
    outbox.want(_found["db"].engine, _found["wanted"] if "events" in names else None)
    if "facts" in names:
        vars(_found["facts"]).pop("current", None)
    else:
        _found["facts"].current = lambda revision=None: KnownFacts()
    if "statistics" in names:
        vars(statistics).pop("begin", None)
    else:
        statistics.begin = lambda: None  # as with an interval of 0


def _obey() -> None:
    for line in sys.stdin:
        if "end" in line:
            # What is written later belongs to this turn. Statistics are written once in a minute, in any turn.
            _found["journal"].flush()
            _deliver()
        else:
            _switch(set(line.split()))
        print("switched", file=sys.stderr, flush=True)


def _deliver() -> None:
    """Wait until all events are delivered."""
    while True:
        with _found["db"].reader() as conn:
            if outbox.read(conn, clock.now()).oldest_s == 0:
                return
        time.sleep(0.2)


def _note(name: str, kind: Any, method: str) -> None:
    original = getattr(kind, method)

    def noting(self: Any, *args: Any, **options: Any) -> None:
        original(self, *args, **options)
        _found[name] = self

    setattr(kind, method, noting)


def main() -> int:
    _note("journal", Journal, "__init__")
    _note("facts", FactCache, "__init__")
    _note("statistics", RuleStatistics, "start")
    prepare = service.prepare_config

    def prepare_config(*args: Any, **options: Any) -> Any:
        _found["conf"] = prepare(*args, **options)
        return _found["conf"]

    service.prepare_config = prepare_config
    make = service.make_database

    def make_database(*args: Any, **options: Any) -> Any:
        _found["db"] = make(*args, **options)
        with _found["db"].reader() as conn:
            _found["wanted"] = outbox.wanted(conn)
        return _found["db"]

    service.make_database = make_database
    threading.Thread(target=_obey, daemon=True).start()
    return standalone.main()


if __name__ == "__main__":
    sys.exit(main())
