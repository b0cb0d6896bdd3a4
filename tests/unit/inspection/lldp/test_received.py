"""Places of frames in a report, and their maximum number."""

from __future__ import annotations

from ironic_rules.inspection import lldp
from ironic_rules.inspection.hooks.lldp import ParseLLDPHook
from tests.unit.inspection.tasks import make_task
from tests.walking import walking

FRAME = [[5, "7377"]]


def interfaces(count):
    return {"interfaces": [{"name": f"eth{number}", "lldp": FRAME} for number in range(count)]}


def test_frames_come_from_the_collector_and_else_from_the_inventory():
    inventory = {"interfaces": [{"name": "a", "lldp": [1]}, {"name": "b", "lldp": [2]}, {"name": "c", "lldp": None}]}

    assert lldp.received(inventory, {"lldp_raw": {"a": [3], "b": [], "d": [4]}}) == ({"a": [3], "b": [2]}, 0)


def test_at_most_64_interfaces_are_looked_at():
    frames, left_out = lldp.received(interfaces(70), {})

    assert (list(frames), left_out) == ([f"eth{number}" for number in range(64)], 6)


def test_interfaces_without_a_frame_are_not_counted():
    silent = [{"name": f"vf{number}", "lldp": []} for number in range(200)]

    assert lldp.received({"interfaces": [*silent, {"name": "eth0", "lldp": FRAME}]}, {}) == ({"eth0": FRAME}, 0)


@walking("inventory", [{}, {"interfaces": None}, {"interfaces": "eth0"}, {"interfaces": [None, 7, []]},
                                       {"interfaces": [{"name": ["a"], "lldp": FRAME}, {"lldp": FRAME}]}])
@walking("raw", [None, 7, [FRAME], {"a": FRAME}])
def test_data_of_other_shapes_have_no_frames(inventory, raw):
    assert lldp.received(inventory, {"lldp_raw": raw}) == ({}, 0)


def test_the_hook_says_how_many_interfaces_it_left_out():
    task, plugin_data = make_task(), {}
    ParseLLDPHook()(task, interfaces(70), plugin_data)

    assert len(plugin_data["parsed_lldp"]) == 64
    assert task.messages == [("warning", "LLDP of 6 interfaces is ignored: there are more than 64")]


def test_warnings_do_not_grow_with_the_report():
    task = make_task()
    hostile = {"interfaces": [{"name": f"{number}" + "\x1b" * 4000, "lldp": [["x" * 4000] * 3] * 250}
                              for number in range(16)]}
    ParseLLDPHook()(task, hostile, {})

    (level, text), = task.messages
    assert level == "warning"
    assert text.startswith("LLDP is incomplete: ")
    assert len(text) < 1000
    assert text.isprintable()
