"""``ramdisk`` deployments over HTTP, in one process: machines that boot their instance over the network."""

from __future__ import annotations

import pytest

from ironic_rules.hardware.agent.in_band import AgentSteps
from ironic_rules.hardware.base import HardwareType
from ironic_rules.hardware.fake import FakePower
from tests.functional.hardware.bmcs import web_server
from tests.functional.test_cleaning import beat, finished, token_of
from tests.functional.whole import fault, running
from tests.walking import walking

MAC = "52:54:00:ab:00:01"


class NetworkBooted(HardwareType):
    """Fake machines that boot over the network."""

    supported_boot_interfaces = ("ipxe", "fake")
    supported_deploy_interfaces = ("ramdisk",)
    supported_management_interfaces = ("fake",)
    supported_power_interfaces = ("fake",)
    supported_rescue_interfaces = ("agent",)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ramdisks")
    for name in ("kernel", "initrd", "live.iso"):
        (folder / name).write_bytes(b"content")
    config = ("[DEFAULT]\nenabled_boot_interfaces = ipxe,fake\nenabled_rescue_interfaces = agent,fake,no-rescue\n"
              "[deploy]\nimage_url_denied_networks =\n"
              f"http_url = http://192.0.2.1\nhttp_root = {folder}/published\n")
    with web_server(folder) as url, running(folder, config, {"network-booted": NetworkBooted}) as service:
        service.folder, service.url = folder, url
        yield service


def enrolled(whole, automated_clean=False, **instance_info):
    """Return the node of the machine, whose boot script is that of no earlier instance."""
    (whole.folder / "published" / "instances" / MAC.replace(":", "-")).unlink(missing_ok=True)
    node = whole.enroll("available", driver="network-booted", automated_clean=automated_clean)
    for port in whole.app.get("/v1/ports").json["ports"]:
        assert whole.app.delete(f"/v1/ports/{port['uuid']}").status_int == 204
    assert whole.app.post_json("/v1/ports", {"node_uuid": node, "address": MAC}).status_int == 201
    whole.put(node, instance_info={
        key: value.format(url=whole.url) if isinstance(value, str) else value for key, value in instance_info.items()})
    return node


def script(whole):
    """Return the boot script of the machine's instance; None if there is none."""
    path = whole.folder / "published" / "instances" / MAC.replace(":", "-")
    return path.read_text().splitlines() if path.exists() else None


def test_a_machine_boots_a_kernel_and_a_ramdisk_until_it_is_torn_down(whole):
    node = enrolled(whole, kernel="{url}/kernel", ramdisk="{url}/initrd", kernel_append_params="console=ttyS0 quiet")

    shown = whole.provision(node, "active")

    assert (shown["provision_state"], shown["last_error"], shown["power_state"]) == ("active", None, "power on")
    assert shown["driver_internal_info"]["fake_boot_device"] == {"boot_device": "pxe", "persistent": True}
    assert script(whole)[1:3] == [
        f"kernel --name kernel {whole.url}/kernel console=ttyS0 quiet initrd=ramdisk || goto failed",
        f"initrd --name ramdisk {whole.url}/initrd || goto failed"]
    assert "chain --autofree instances/" in (whole.folder / "published" / "boot.ipxe").read_text()

    assert whole.provision(node, "deleted")["power_state"] == "power off"
    assert script(whole) is None


def test_a_machine_boots_an_iso_image(whole):
    node = enrolled(whole, boot_iso="{url}/live.iso")

    assert whole.provision(node, "active")["provision_state"] == "active"

    assert script(whole)[1] == f"sanboot {whole.url}/live.iso || goto failed"


@pytest.mark.parametrize(("verb", "arguments", "undo", "state", "power"), [
    ("rescue", {"rescue_password": "secret"}, ["abort", "unrescue"], "active", "power on"),
    ("service", {"service_steps": [{"interface": "power", "step": "reboot"}]}, ["abort"], "service failed",
     "power off")])
def test_a_machine_boots_its_instance_after_the_ramdisk_of_the_agent(whole, verb, arguments, undo, state, power):
    node = enrolled(whole, boot_iso="{url}/live.iso")
    whole.provision(node, "active")
    assert whole.provision(node, verb, **arguments)["provision_state"] == f"{verb} wait"
    # The agent's ramdisk is where some machines have their instance.
    (whole.folder / "published" / "instances" / MAC.replace(":", "-")).unlink()

    for following in undo:
        shown = whole.provision(node, following)

    assert (shown["provision_state"], shown["power_state"]) == (state, power)
    assert shown["driver_internal_info"]["fake_boot_device"] == {"boot_device": "pxe", "persistent": True}
    assert script(whole)[1] == f"sanboot {whole.url}/live.iso || goto failed"


def test_what_was_prepared_is_undone_if_the_machine_does_not_boot(whole, monkeypatch):
    seen = []

    def fail(power, task, target, timeout_s=None):
        seen.append(script(whole) is not None)
        raise RuntimeError("it smokes")

    monkeypatch.setattr(FakePower, "set_power_state", fail)
    node = enrolled(whole, boot_iso="{url}/live.iso")

    assert whole.provision(node, "active")["provision_state"] == "deploy failed"

    assert (seen[0], script(whole)) == (True, None)


@walking("instance_info, where", [
    ({}, "/instance_info/kernel: is missing"),
    ({"kernel": "{url}/kernel"}, "/instance_info/ramdisk: is missing"),
    ({"boot_iso": "{url}/live.iso; echo"}, "/instance_info/boot_iso: must be a URL"),
    ({"boot_iso": "{url}/missing.iso"}, "/instance_info/boot_iso: the image cannot be loaded"),
    ({"boot_iso": "{url}/live.iso", "kernel_append_params": "x"}, "/instance_info/kernel_append_params: cannot"),
    ({"kernel": "{url}/kernel", "ramdisk": "{url}/initrd", "kernel_append_params": "a=$x"}, "kernel parameter 'a'"),
    ({"boot_iso": "{url}/live.iso", "image_source": "{url}/x"}, "/instance_info/image_source: is not written"),
    ({"boot_iso": "{url}/live.iso", "configdrive": "x"}, "/instance_info/configdrive: cannot be passed"),
])
def test_what_can_not_be_booted_is_refused(whole, instance_info, where):
    node = enrolled(whole, **instance_info)

    reply = whole.ask(node, "active")

    assert (reply.status_int, whole.row(node).provision_state, script(whole)) == (400, "available", None)
    assert where in fault(reply)
    assert where in whole.app.get(f"/v1/nodes/{node}/validate").json["deploy"]["reason"]


def test_a_boot_interface_that_can_not_boot_it_refuses_it(whole):
    node = enrolled(whole, boot_iso="{url}/live.iso")
    whole.put(node, boot_interface="fake")

    reply = whole.ask(node, "active")

    assert reply.status_int == 400
    assert "booting the ramdisk of an instance" in fault(reply)


def test_the_agents_ramdisk_services_and_cleans_such_a_machine(whole, monkeypatch):
    monkeypatch.setattr(AgentSteps, "continue_step", lambda *arguments: None)
    node = enrolled(whole, automated_clean=True, kernel="{url}/kernel", ramdisk="{url}/initrd")
    whole.provision(node, "active")
    booted = script(whole)

    shown = whole.provision(node, "service", service_steps=[{"interface": "power", "step": "reboot"}])
    assert (shown["provision_state"], shown["service_step"]["step"]) == ("service wait", "prepare_service")
    row = beat(whole, node, token_of(whole, node))
    assert (row.provision_state, row.last_error, row.power_state, script(whole)) == ("active", None, "power on", booted)
    assert whole.provision(node, "deleted")["provision_state"] == "clean wait"
    row = beat(whole, node, token_of(whole, node))

    assert (row.provision_state, row.last_error, row.power_state) == ("available", None, "power off")
    assert script(whole) is None
    assert finished(whole, node) == [
        "deploy.prepare_service", "power.reboot", "deploy.tear_down_service", "deploy.prepare_cleaning",
        "deploy.tear_down_cleaning"]
