from __future__ import annotations

import pytest

from ironic_rules.api import node_versions
from ironic_rules.api.node_versions import Since
from ironic_rules.exceptions import NotAcceptable


def test_a_name_is_hidden_below_its_version_only():
    since = Since({"a": 5, "b": 9})

    assert [sorted(since.hidden(minor)) for minor in (1, 4, 5, 8, 9, 96)] == [
        ["a", "b"], ["a", "b"], ["b"], ["b"], [], []]


def test_names_without_a_version_are_always_known():
    Since({"a": 5}).refuse(["b", "nosuch"], 1)


def test_a_refusal_names_everything_that_is_too_new_and_the_version_that_knows_all():
    with pytest.raises(NotAcceptable, match=r"a, b needs at least API version 1\.9\."):
        Since({"a": 5, "b": 9, "c": 3}).refuse(["b", "a", "c"], 4)


@pytest.mark.parametrize(("field", "since"), [
    ("power_interface", 31), ("network_interface", 20), ("storage_interface", 33), ("rescue_interface", 38),
    ("bios_interface", 40), ("firmware_interface", 86), ("conductor", 49), ("disable_power_off", 95),
])
def test_fields_of_nodes_came_with_these_versions(field, since):
    assert field in node_versions.NODE_FIELDS.hidden(since - 1)
    assert field not in node_versions.NODE_FIELDS.hidden(since)
