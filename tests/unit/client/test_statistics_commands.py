"""The command that shows the statistics of rules."""

from __future__ import annotations

import pytest
from osc_lib import exceptions

from ironic_rules.client import rule_commands
from tests.unit.client.openstack_app import Connection, run

ENTRY = {**dict.fromkeys(rule_commands._COLUMNS), "uuid": "u1", "matched": 3, "last_node": "n1"}


def test_statistics_of_all_rules_and_of_one():
    listing = Connection(lambda *request: {"statistics": [ENTRY]})
    status, printed = run(rule_commands.ShowStatistics, listing, "--never-matched-since", "2026-03-01T00:00:00+01:00",
                          "-f", "value", "-c", "uuid", "-c", "matched", "-c", "last_node")
    assert (status, printed.strip()) == (0, "u1 3 n1")
    assert listing.requests == [
        ("GET", "/v1/inspection_rules/statistics?never_matched_since=2026-03-01T00%3A00%3A00%2B01%3A00", None)]
    showing = Connection(lambda *request: ENTRY)
    assert run(rule_commands.ShowStatistics, showing, "u1", "-f", "json")[0] == 0
    assert showing.requests == [("GET", "/v1/inspection_rules/u1/statistics", None)]


def test_the_filter_is_for_the_list_only():
    with pytest.raises(exceptions.CommandError, match="list of all rules"):
        run(rule_commands.ShowStatistics, Connection(lambda *request: ENTRY), "u1", "--never-matched-since",
            "2026-03-01")
