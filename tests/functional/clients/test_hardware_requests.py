"""Requests of clients to a node's machine: ``openstack baremetal node …`` and openstacksdk, with their own calls."""

from __future__ import annotations

import openstack
import pytest

from tests.functional.clients.test_cli import Cli
from tests.functional.processes import wait_for

# The library calls methods that it has itself deprecated.
pytestmark = pytest.mark.filterwarnings("ignore::PendingDeprecationWarning:openstack")
RAID = '{"logical_disks": [{"size_gb": 100, "raid_level": "1", "is_root_volume": true}]}'


@pytest.mark.slow
def test_the_command_line(endpoint, tmp_path):
    cli = Cli(endpoint, tmp_path)
    node = cli.json("node create --driver fake-hardware --name cli-hardware")["uuid"]
    cli.run("node manage --wait 60", node)

    cli.run("node boot device set --persistent", node, "disk")
    assert cli.json("node boot device show", node) == {"boot_device": "disk", "persistent": True}
    assert "pxe" in str(cli.json("node boot device show --supported", node)["supported_boot_devices"])
    cli.run("node inject nmi", node)
    cli.run("node boot mode set", node, "uefi")
    wait_for("the boot mode", lambda: cli.json("node show", node)["boot_mode"] == "uefi")
    cli.run("node secure boot on", node)
    wait_for("secure boot", lambda: cli.json("node show", node)["secure_boot"] is True)
    cli.run("node console enable", node)
    wait_for("the console", lambda: cli.json("node console show", node)["console_enabled"] is True)
    cli.run("node console disable", node)
    (tmp_path / "raid.json").write_text(RAID)
    cli.run("node set --target-raid-config raid.json", node)
    assert cli.json("node show", node)["target_raid_config"]["logical_disks"][0]["size_gb"] == 100
    firmware = cli.run("node firmware list", node)
    assert all(component in firmware for component in ("bios", "bmc", "1.0"))
    assert cli.json("node bios setting list", node) == []
    assert "NoSuch" in cli.refused("node bios setting show", node, "NoSuch")
    assert "send_raw" in cli.run("node passthru list", node)
    cli.run("node passthru call --arg raw_bytes=0x00", node, "send_raw")
    assert "RAID level" in cli.run("driver raid property list fake-hardware")
    assert cli.run("driver passthru list fake-hardware").strip() == ""
    assert "no vendor method" in cli.refused("driver passthru call fake-hardware x")


def test_the_sdk(endpoint):
    with openstack.connect(
            load_yaml_config=False, load_envvars=False, auth_type="none", endpoint=endpoint) as connection:
        sdk = connection.baremetal
        node = sdk.create_node(driver="fake-hardware", name="sdk-hardware")
        sdk.set_node_provision_state(node, "manage", wait=True)

        sdk.set_node_boot_device(node, "cdrom", persistent=False)
        assert sdk.get_node_boot_device(node) == {"boot_device": "cdrom", "persistent": False}
        assert "pxe" in sdk.get_node_supported_boot_devices(node)["supported_boot_devices"]
        sdk.inject_nmi_to_node(node)
        sdk.set_node_boot_mode(node, "bios")
        wait_for("the boot mode", lambda: sdk.get_node(node).boot_mode == "bios")
        sdk.set_node_secure_boot(node, True)
        wait_for("secure boot", lambda: sdk.get_node(node).is_secure_boot is True)
        sdk.attach_vmedia_to_node(node, "cdrom", "http://192.0.2.1/a.iso")
        sdk.detach_vmedia_from_node(node, ["cdrom"])
        sdk.enable_node_console(node)
        wait_for("the console", lambda: sdk.get_node_console(node)["console_enabled"])
        sdk.disable_node_console(node)
        assert [one["component"] for one in sdk.list_node_firmware(node)["firmware"]] == ["bios", "bmc"]
        assert list(sdk.list_node_vendor_passthru(node)) == ["send_raw"]
        assert sdk.call_node_vendor_passthru(node, "POST", "send_raw", {"raw_bytes": "0x00"}).status_code == 200
        assert sdk.list_driver_vendor_passthru("fake-hardware") == {}
