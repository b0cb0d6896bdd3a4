"""Reasons of failures."""

from __future__ import annotations

from ironic_rules.models import nodes
from ironic_rules.models.documents import difference_of_sets
from tests.walking import walking

UUID = "0d4a7b12-64c5-4f0d-9a35-5d8a6a1cbb01"


@walking("error, reason", [
    ("", ""),
    (f"Node {UUID} of 10.0.0.7 is silent", "Node … of … is silent"),
    ("eth0 of 52:54:00:AB:cd:01 has no link", "eth0 of … has no link"),
    ("a" * 299, "a" * 299),
    (f"{'a' * 270} {UUID} is cut off", "a" * 270 + " …"),
    ("8 " * 100, "… " * 15 + "…"),
])
def test_what_is_a_machines_own_is_left_out(error, reason):
    assert nodes.failure_reason(error) == reason
    assert len(nodes.failure_reason(error)) <= nodes.MAX_REASON + 1


@walking("before, after, patch", [
    ({"B"}, {"B"}, []),
    ({"B"}, {"A", "B", "C"}, [("add", "/t/0", "A"), ("add", "/t/-", "C")]),
    ({"A", "B", "C", "D"}, {"B", "E"}, [
        ("remove", "/t/3", None), ("remove", "/t/2", None), ("remove", "/t/0", None), ("add", "/t/-", "E")]),
])
def test_a_set_differs_by_one_operation_for_each_text(before, after, patch):
    found = difference_of_sets(before, after, ("t",))
    assert [(each["op"], each["path"], each.get("value")) for each in found] == patch
