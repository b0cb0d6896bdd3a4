import io
import json

import pytest
from rich.console import Console

from ironic_rules import samples
from ironic_rules.simulator import inventories, report
from ironic_rules.simulator.client import Callback
from ironic_rules.simulator.fleet import FleetOutcome, MachineRun
from ironic_rules.simulator.inventories import Sample
from tests.walking import walking

MACHINE = inventories.vary(Sample("vm", samples.inventory("vm-qemu-bios")), "t", 0)


def outcome(failing=0):
    runs = [MachineRun(MACHINE, posted_at=10.0 + i, done_at=11.0 + i, state="manageable",
                       callback=Callback(True, False, 0.001 * (i + 1), 1)) for i in range(100)]
    for run in runs[:failing]:
        run.fail("inspect", "it [b]broke[/b]")
    return FleetOutcome(runs, {"prepare": 60.00001, "inspect": 100.0, "verify": 40.0})


def text(made):
    buffer = io.StringIO()
    report.show(made, Console(file=buffer, width=200))
    return buffer.getvalue()


@walking("percent, expected", [(0, 1), (50, 2), (75, 3), (76, 4), (100, 4)])
def test_percentile_is_the_nearest_rank(percent, expected):
    assert report.percentile([4, 2, 1, 3], percent) == expected


def test_percentile_of_nothing_is_nothing():
    assert report.percentile([], 99) is None


def test_rates_count_nodes_that_ended_as_expected():
    made = report.make(outcome(failing=20), "t", "http://x", 8)

    assert (made.nodes, made.as_expected, made.ok) == (100, 80, False)
    assert [made.nodes_per_second, made.nodes_per_second_overall] == pytest.approx([0.8, 0.4])


def test_post_times_are_in_milliseconds():
    post = report.make(outcome(), "t", "http://x", 8).post

    assert (post.count, post.retried) == (100, 0)
    assert [post.p50_ms, post.p95_ms, post.p99_ms, post.max_ms] == pytest.approx([50, 95, 99, 100])


def test_a_run_in_which_nothing_was_sent_has_no_rates():
    made = report.make(FleetOutcome([MachineRun(MACHINE, step="prepare", problem="no")]), "t", "http://x", 8)

    assert (made.nodes_per_second, made.nodes_per_second_overall, made.post.p50_ms) == (None, None, None)
    assert "0 of 1" in text(made)


def test_the_json_form_is_json_and_rounded():
    made = report.make(outcome(failing=1), "t", "http://x", 8)
    data = json.loads(json.dumps(made.to_json()))

    assert data["failures"] == [{"node": "sim-t-0", "sample": "vm", "step": "inspect", "reason": "it [b]broke[/b]"}]
    assert (data["nodes_per_second"], data["seconds"]["prepare"]) == (0.99, 60.0)
    assert data["states"] == {"manageable": 100}


def test_the_text_form_shows_figures_and_some_failures():
    shown = text(report.make(outcome(failing=30), "t", "http://x", 8))

    assert "70 of 100 (30 not)" in shown
    assert "p50 50.0 ms, p95 95.0 ms, p99 99.0 ms" in shown
    assert shown.count("sim-t-0 (vm), inspect: it [b]broke[/b]") == 20
    assert "... and 10 more" in shown
