"""Inspect interfaces whose ``continue_inspection`` returns the next state, and not the data (M-41)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ironic_rules import context
from ironic_rules.conductor import inspection, recovery
from ironic_rules.conductor.worker_pool import Slot
from ironic_rules.db import clock
from tests.functional.installations import only_in_one_process
from tests.functional.rows import drivers, interfaces
from tests.functional.rows.conftest import create, stored
from tests.functional.whole import Whole

PATIENT = {"two": interfaces.InTwoParts, "itself": interfaces.ByItself, "odd": interfaces.Odd}
CPU, MEMORY = {"cpu": {"architecture": "x86_64"}}, {"memory": {"physical_mb": 4096}}


@pytest.fixture(scope="module")
def patient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Whole]:
    with drivers.running(tmp_path_factory.mktemp("patient"), "[inspection_rules]\nsupported_interfaces = .*\n",
                         {"remote": interfaces.PatientHardware}, PATIENT) as whole:
        create(whole, {"op": "set-plugin-data", "args": ["/rule", True]})
        yield whole


def first_part(whole: Whole, node: str) -> Any:
    """Send the first report, and return the node when it waits for the second one."""
    whole.provision(node, "inspect")
    began = whole.row(node).provision_updated_at
    assert whole.callback(node, {"inventory": CPU, "part": 1}).status_int == 200
    row = whole.at_rest(node)
    assert (row.provision_state, row.last_error, row.extra) == ("inspect wait", None, {"first": ["cpu"]})
    assert row.provision_updated_at > began
    assert whole.inventories(node)[-1] == "waiting"
    assert whole.app.get(f"/v1/nodes/{node}/inventory?status=waiting").json == {
        "inventory": CPU, "plugin_data": {"part": 1}, "status": "waiting"}
    return row


@pytest.mark.parametrize("target", ["manageable", "enroll"])
def test_m_41_an_asynchronous_interface_waits_for_more_and_what_it_has_is_stored(patient, target):
    node = patient.enroll("manageable", driver="remote", inspect_interface="two")
    patient.provision(node, "inspect")
    patient.put(node, target_provision_state=target)  # as discovery's
    assert patient.callback(node, {"inventory": CPU, "part": 1}).status_int == 200
    row = patient.at_rest(node)
    assert (row.provision_state, row.target_provision_state, row.last_error) == ("inspect wait", target, None)

    assert patient.callback(node, {"inventory": MEMORY, "more": 2}).status_int == 200

    row = patient.at_rest(node)
    assert (row.provision_state, row.last_error, row.driver_internal_info) == (target, None, {})
    assert row.properties == {"cpu_arch": "x86_64"}
    assert patient.inventories(node) == ["processed", "processed"]
    assert stored(patient, node)["plugin_data"] == {
        "part": 1, "more": 2, "rule": True, "all_interfaces": {}, "valid_interfaces": {}, "macs": []}


@pytest.mark.parametrize("end", [
    "abort", "again", pytest.param("time out", marks=only_in_one_process("it calls a function of the conductor"))])
def test_m_41_a_wait_for_more_ends_like_any_other(patient, end):
    node = patient.enroll("manageable", driver="remote", inspect_interface="two")
    row = first_part(patient, node)

    if end == "time out":
        inspection.time_out(patient.conductor, context.admin(), row, clock.now())
    else:
        patient.ask(node, "abort")

    row = patient.at_rest(node)
    assert (row.provision_state, row.driver_internal_info) == ("inspect failed", {})
    assert patient.inventories(node) == ["failed"]
    if end == "again":
        first_part(patient, node)
        assert patient.inventories(node) == ["failed", "waiting"]


@only_in_one_process("it ends the conductor at one point of its work")
def test_m_41_a_resumed_interface_finds_what_it_has_received_before(patient, monkeypatch):
    node = patient.enroll("manageable", driver="remote", inspect_interface="two")
    first_part(patient, node)
    # The conductor ends as soon as it has accepted the second report.
    with monkeypatch.context() as patch:
        patch.setattr(Slot, "run", lambda slot, *arguments: slot._workers._give_back(slot._node_id))
        assert patient.callback(node, {"inventory": MEMORY}).status_int == 200

    assert recovery.resume_orphans(patient.conductor) == 1

    assert patient.at_rest(node).provision_state == "manageable"
    assert stored(patient, node)["plugin_data"]["part"] == 1


def test_m_41_an_interface_may_do_all_itself(patient):
    node = patient.inspect(patient.enroll("manageable", driver="remote", inspect_interface="itself"),
                           {"inventory": CPU, "sent": 1})

    assert (node["provision_state"], node["extra"], node["properties"]) == ("manageable", {"by itself": True}, {})
    assert stored(patient, node["uuid"])["plugin_data"] == {"sent": 1}


@pytest.mark.parametrize(("odd", "part"), [
    (None, "but NoneType"), ("active", "but active"), ({"cpu": {}}, "but dict"),
    ("nan", "a value that cannot be stored: /x/0 of the plug-in data is not a finite number")])
def test_m_41_any_other_answer_of_an_interface_fails_the_inspection(patient, odd, part):
    node = patient.inspect(patient.enroll("manageable", driver="remote", inspect_interface="odd"),
                           {"inventory": CPU, "odd": odd})

    assert node["provision_state"] == "inspect failed"
    assert part in node["last_error"]
