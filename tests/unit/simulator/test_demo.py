import io

import pytest
from rich.console import Console

from ironic_rules import samples
from ironic_rules.simulator import demo
from ironic_rules.simulator.client import ApiError
from tests.walking import walking

NAMES = {"11111111-1111-4111-8111-111111111111": "one", "22222222-2222-4222-8222-222222222222": "two"}


@pytest.fixture
def console():
    return Console(file=io.StringIO(), width=160)


def test_the_demo_inspects_every_sample(service, console):
    rows = demo.run(service.url, console)

    assert [row.node for row in rows] == [f"demo-{name}" for name in samples.inventory_names()]
    assert [row.state for row in rows] == [row.expected_state for row in rows]
    assert all(row.seconds is not None for row in rows)


def test_the_table_shows_what_changed(service, console):
    demo.run(service.url, console)

    shown = console.file.getvalue()
    expected = ["demo-dell-r660", "inspect failed", "CUSTOM_X", "cpu_arch: x86_64", "refuse less than",
                "52:54:00:7f:19:c3"]
    assert [text for text in expected if text not in shown] == []


def test_the_demo_can_be_run_again(service, console):
    demo.run(service.url, console)

    rows = demo.run(service.url, console)

    assert [row.state for row in rows] == [row.expected_state for row in rows]
    assert len(service.nodes) == len(service.ports) == len(rows)
    # Only what the second run added to the history counts.
    assert {len(row.rules) for row in rows} == {2}


def test_trouble_with_one_node_is_shown_in_its_row(service, console):
    service.ports.append({"address": "52:54:00:7f:19:c3", "node_uuid": "another"})

    rows = {row.node: row for row in demo.run(service.url, console)}

    assert rows["demo-vm-qemu-bios"].error.endswith("409 A port with that address exists.")
    assert rows["demo-dell-r660"].state == "manageable"


def test_a_name_that_another_node_has_is_shown_in_its_row(service, console):
    service.nodes["another"] = {"uuid": "another", "name": "demo-vm-qemu-bios", "provision_state": "enroll"}

    rows = {row.node: row for row in demo.run(service.url, console)}

    assert rows["demo-vm-qemu-bios"].error.endswith("409 A node with name demo-vm-qemu-bios already exists.")


def test_rules_that_the_service_refuses_end_the_demo(service, console):
    service.root = {}

    with pytest.raises(ApiError):
        demo.run(service.url, console)


def test_matched_rules_are_read_from_the_events_text():
    first, second = NAMES
    text = f"Inspection finished: rules matched: {second} (two), {first.upper()} (x)"
    event = {"event_type": "inspection", "event": text}

    assert demo.matched_rules([event, event], NAMES) == ["two", "one"]


@walking("event", [
    {"event_type": "provisioning", "event": "rule 11111111-1111-4111-8111-111111111111 was deleted"},
    {"event_type": "inspection", "event": "rules matched: 33333333-3333-4333-8333-333333333333"},
    {"event_type": None, "event": None},
])
def test_other_events_and_other_uuids_are_no_matched_rules(event):
    assert demo.matched_rules([event], NAMES) == []


def test_texts_of_the_service_are_not_taken_for_markup(console):
    console.print(demo.table([demo.Row("n", "manageable", "manageable", rules=["[bold]x[/bold]"])]))

    assert "[bold]x[/bold]" in console.file.getvalue()


def test_a_narrow_terminal_gets_the_parts_below_each_other():
    console = Console(file=io.StringIO(), width=80)
    row = demo.Row("n", "manageable", "manageable", ["r1", "r2"], ["CUSTOM_A"], {"capabilities": "a:b,c:d"},
                   [demo.ShownPort("52:54:00:7f:19:c3", True, "lab")], 0.5)

    console.print(demo.table([row], 80))

    for text in ("Rules that matched: r1, r2", "Properties: a:b, c:d", "52:54:00:7f:19:c3 (pxe; lab)", "0.50 seconds"):
        assert text in console.file.getvalue()
