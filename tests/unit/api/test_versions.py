from __future__ import annotations

import pytest

from ironic_rules.api import versions
from ironic_rules.exceptions import NotAcceptable
from ironic_rules.models.nodes import NODE
from ironic_rules.models.ports import PORT
from tests.walking import walking


def test_names_without_a_version_are_always_known():
    versions.refuse_fields(NODE, ["driver", "nosuch"], 1)
    versions.refuse_filters(NODE, ["associated", "nosuch"], 1)


def test_a_refusal_names_everything_that_is_too_new_and_the_version_that_knows_all():
    with pytest.raises(NotAcceptable, match=r"fault, name needs at least API version 1\.42\."):
        versions.refuse_fields(NODE, ["name", "fault", "extra"], 4)


def test_a_filter_can_be_newer_than_the_field():
    with pytest.raises(NotAcceptable, match=r"driver needs at least API version 1\.16\."):
        versions.refuse_filters(NODE, ["driver"], 15)


def test_fields_that_only_requests_have_came_with_a_version_too():
    with pytest.raises(NotAcceptable, match=r"node_ident needs at least API version 1\.94\."):
        versions.refuse_fields(PORT, ["node_ident"], 93)


@walking("field, since", [
    ("power_interface", 31), ("network_interface", 20), ("storage_interface", 33), ("rescue_interface", 38),
    ("bios_interface", 40), ("firmware_interface", 86), ("conductor", 49), ("disable_power_off", 95),
])
def test_fields_of_nodes_came_with_these_versions(field, since):
    assert field in NODE.hidden(since - 1)
    assert field not in NODE.hidden(since)
