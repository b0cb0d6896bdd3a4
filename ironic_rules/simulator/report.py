"""The report of a run: counts, rates and the distribution of the reports' times."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ironic_rules.models.documents import JSON, JSONObject
from ironic_rules.simulator.fleet import FleetOutcome

_SHOWN_FAILURES = 20


@dataclass(frozen=True)
class NodeFailure:
    """One node that did not end as expected, with the step and the reason."""

    node: str
    sample: str
    step: str
    reason: str


@dataclass(frozen=True)
class PostTimes:
    """Distribution of the accepted reports' times in milliseconds; None where nothing was measured.

    ``retried`` counts reports that needed more than one try.
    """

    count: int
    retried: int
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    max_ms: float | None


@dataclass(frozen=True)
class RunReport:
    """The figures of one run.

    :param inspection_seconds: from the first report to the end of the last node's processing
    :param nodes_per_second: nodes that ended as expected, divided by that time
    :param nodes_per_second_overall: the same divided by the time of the whole run, with enrolment and verification
    :param seconds: by step: prepare, inspect, verify
    :param states: number of nodes by their last known provision state
    """

    run_id: str
    endpoint: str
    nodes: int
    concurrency: int
    as_expected: int
    nodes_per_second: float | None
    nodes_per_second_overall: float | None
    inspection_seconds: float | None
    post: PostTimes
    seconds: dict[str, float]
    states: dict[str, int]
    failures: list[NodeFailure]

    @property
    def ok(self) -> bool:
        """True if every node ended as expected."""
        return not self.failures

    def to_json(self) -> JSONObject:
        """Return the report as JSON data; times are rounded to four decimal places."""
        data: JSONObject = _rounded(asdict(self))
        return data


def make(outcome: FleetOutcome, run_id: str, endpoint: str, concurrency: int) -> RunReport:
    """Return the report of a run."""
    runs = outcome.runs
    good = sum(1 for run in runs if not run.problem)
    begins = [run.posted_at for run in runs if run.posted_at is not None]
    ends = [run.done_at for run in runs if run.done_at is not None]
    inspection_s = max(ends) - min(begins) if begins and ends else None
    overall_s = sum(outcome.seconds.values())
    return RunReport(
        run_id=run_id, endpoint=endpoint, nodes=len(runs), concurrency=concurrency, as_expected=good,
        nodes_per_second=good / inspection_s if inspection_s else None,
        nodes_per_second_overall=good / overall_s if overall_s else None,
        inspection_seconds=inspection_s, post=_post_times(outcome), seconds=dict(outcome.seconds),
        states=dict(Counter(run.state or "not known" for run in runs)),
        failures=[NodeFailure(run.machine.name, run.machine.sample, run.step, run.problem)
                  for run in runs if run.problem],
    )


def percentile(values: Sequence[float], percent: float) -> float | None:
    """Return the smallest of ``values`` that at least ``percent`` per cent of them do not exceed (nearest rank)."""
    if not values:
        return None
    ordered = sorted(values)
    return ordered[max(math.ceil(percent / 100 * len(ordered)), 1) - 1]


def show(report: RunReport, console: Console) -> None:
    """Print the report for users."""
    title = f"{report.nodes} nodes at {report.endpoint}, {report.concurrency} at a time"
    table = Table(title=escape(title), title_justify="left", show_header=False)
    table.add_column(style="bold")
    table.add_column()
    verdict = "all" if report.ok else f"[red]{len(report.failures)} not[/red]"
    table.add_row("ended as expected", f"{report.as_expected} of {report.nodes} ({verdict})")
    span = "nothing reported"
    if report.inspection_seconds is not None:
        span = f"{report.inspection_seconds:.1f} s from the first report to the end of the last node"
    table.add_row("inspection", f"{_figure(report.nodes_per_second, 'nodes/s')} ({span})")
    table.add_row("whole run", f"{_figure(report.nodes_per_second_overall, 'nodes/s')} "
                               f"({', '.join(f'{step} {value:.1f} s' for step, value in report.seconds.items())})")
    post = report.post
    table.add_row("POST continue_inspection", f"p50 {_figure(post.p50_ms, 'ms')}, p95 {_figure(post.p95_ms, 'ms')}, "
                                              f"p99 {_figure(post.p99_ms, 'ms')}, longest {_figure(post.max_ms, 'ms')}")
    if post.retried:
        table.add_row("repeated reports", str(post.retried))
    table.add_row("states", ", ".join(f"{count} {escape(state)}" for state, count in sorted(report.states.items())))
    console.print(table)
    for failure in report.failures[:_SHOWN_FAILURES]:
        console.print(f"[red]{failure.node}[/red] ({escape(failure.sample)}), {failure.step}: {escape(failure.reason)}")
    if len(report.failures) > _SHOWN_FAILURES:
        console.print(f"... and {len(report.failures) - _SHOWN_FAILURES} more")


def _post_times(outcome: FleetOutcome) -> PostTimes:
    callbacks = [run.callback for run in outcome.runs if run.callback is not None]
    times = [1000 * callback.seconds for callback in callbacks if callback.accepted]
    return PostTimes(
        count=len(times), retried=sum(1 for callback in callbacks if callback.tries > 1), p50_ms=percentile(times, 50),
        p95_ms=percentile(times, 95), p99_ms=percentile(times, 99), max_ms=max(times, default=None),
    )


def _figure(value: float | None, unit: str) -> str:
    return "-" if value is None else f"{value:.1f} {unit}"


def _rounded(value: JSON) -> Any:
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return value
