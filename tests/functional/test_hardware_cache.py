"""BIOS settings and firmware of nodes: read with the machine, kept in the database, shown by the API."""

from __future__ import annotations

import pytest

from ironic_rules.db import hardware_cache
from ironic_rules.exceptions import BMCError
from ironic_rules.hardware import waiting
from ironic_rules.hardware.fake import FakeBIOS
from ironic_rules.models import states
from ironic_rules.models.nodes import BIOSSetting, FirmwareComponent
from tests.functional.api.conftest import at
from tests.functional.whole import fault, running

SETTINGS = [{"name": "ProcTurboMode", "value": "Disabled"}, {"name": "Cores", "value": 8}]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    with running(tmp_path_factory.mktemp("cache")) as started:
        yield started


def put(whole, node, settings):
    node_id = whole.row(node).id
    whole.db.write(lambda conn: hardware_cache.save_settings(conn, node_id, settings))


def test_a_managed_node_shows_what_its_bmc_reports(whole):
    node = whole.enroll()
    assert whole.app.get(f"/v1/nodes/{node}/firmware").json == {"firmware": []}
    put(whole, node, [BIOSSetting("Gone", "1")])

    whole.provision(node, "manage")

    components = whole.app.get(f"/v1/nodes/{node}/firmware").json["firmware"]
    assert [(one["component"], one["initial_version"], one["current_version"], one["last_version_flashed"])
            for one in components] == [("bios", "1.0", "1.0", None), ("bmc", "1.0", "1.0", None)]
    assert whole.app.get(f"/v1/nodes/{node}/bios").json == {"bios": []}
    whole.put(node, provision_state=states.AVAILABLE, power_state=states.POWER_OFF)
    shown = whole.provision(node, "active", deploy_steps=[
        {"interface": "bios", "step": "apply_configuration", "priority": 150, "args": {"settings": SETTINGS}}])
    assert shown["provision_state"] == "active"
    found = whole.app.get(f"/v1/nodes/{node}/bios").json["bios"]
    assert [(one["name"], one["value"]) for one in found] == [("Cores", "8"), ("ProcTurboMode", "Disabled")]
    assert found[0]["links"][0]["href"].endswith(f"/v1/nodes/{node}/bios/Cores")
    assert found[0].keys() == {"name", "value", "created_at", "updated_at", "links"}


def test_what_the_registry_says_is_shown_since_1_74(whole):
    node = whole.enroll()
    put(whole, node, [
        BIOSSetting("BootMode", "Uefi", "Enumeration", ("Bios", "Uefi"), read_only=False, reset_required=True),
        BIOSSetting("SetupPassword", "s3cret", "Password", max_length=32)])

    path = f"/v1/nodes/{node}/bios"
    boot, password = whole.app.get(f"{path}?detail=true").json["bios"]
    assert (boot["allowable_values"], boot["read_only"], boot["reset_required"]) == (["Bios", "Uefi"], False, True)
    assert (password["value"], password["max_length"]) == ("******", 32)
    assert whole.app.get(f"{path}/BootMode").json["BootMode"] == boot
    assert whole.app.get(f"{path}/BootMode", headers=at(73)).json["BootMode"].keys() == {
        "name", "value", "created_at", "updated_at", "links"}
    assert whole.app.get(f"{path}?fields=value").json["bios"][0]["value"] == "Uefi"
    for query, minor, status in (("?detail=true", 73, 406), ("?fields=nosuch", 96, 400), ("/nosuch", 96, 404),
                                 ("?detail=true&fields=name", 96, 400), ("", 39, 404)):
        assert whole.app.get(path + query, headers=at(minor)).status_int == status
    assert "'nosuch'" in fault(whole.app.get(f"{path}/nosuch"))
    assert whole.app.get(f"/v1/nodes/{node}/firmware", headers=at(85)).status_int == 404


def test_only_what_differs_is_written(whole):
    node = whole.enroll()
    put(whole, node, [BIOSSetting("A", "1"), BIOSSetting("B", "1"), BIOSSetting("a", "1")])
    put(whole, node, [BIOSSetting("A", "2"), BIOSSetting("a", "1"), BIOSSetting("C", "1")])

    found = whole.app.get(f"/v1/nodes/{node}/bios").json["bios"]

    assert [(one["name"], one["value"], one["updated_at"] is not None) for one in found] == [
        ("A", "2", True), ("C", "1", False), ("a", "1", False)]


def test_a_component_keeps_its_first_version_and_shows_the_last_one_that_was_flashed(whole):
    node = whole.enroll()
    node_id = whole.row(node).id

    for version in ("1.0", "1.1", None, "1.1"):
        whole.db.write(lambda conn, version=version: hardware_cache.save_components(
            conn, node_id, [FirmwareComponent("bios", version)]))

    (shown,) = whole.app.get(f"/v1/nodes/{node}/firmware").json["firmware"]
    assert (shown["initial_version"], shown["current_version"], shown["last_version_flashed"]) == ("1.0", "1.1", "1.1")


def test_a_bmc_that_does_not_report_its_settings_leaves_those_that_are_known(whole, monkeypatch, caplog):
    node = whole.enroll()
    put(whole, node, [BIOSSetting("A", "1")])

    left = []

    def fail(self, task):
        left.append(waiting.left_s())
        raise BMCError(node=task.node.uuid, reason="it is busy.")

    monkeypatch.setattr(FakeBIOS, "read_settings", fail)

    assert whole.provision(node, "manage")["provision_state"] == "manageable"
    assert [one["name"] for one in whole.app.get(f"/v1/nodes/{node}/bios").json["bios"]] == ["A"]
    assert "its bios interface reports is unknown" in caplog.text
    # For all that is read, while the node is locked.
    assert left[0] <= 180


def test_a_node_whose_interface_has_no_settings_shows_none(whole):
    node = whole.enroll(bios_interface="no-bios", firmware_interface="no-firmware")
    put(whole, node, [BIOSSetting("A", "1")])

    whole.provision(node, "manage")

    assert whole.app.get(f"/v1/nodes/{node}/bios").json == {"bios": []}
    assert whole.app.get(f"/v1/nodes/{node}/firmware").json == {"firmware": []}
