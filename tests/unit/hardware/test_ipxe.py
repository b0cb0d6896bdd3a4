from __future__ import annotations

import pytest

from ironic_rules.exceptions import BMCError, InvalidParameterValue
from ironic_rules.hardware.agent.instance import AgentRescue
from ironic_rules.hardware.boot.ipxe import IPXEBoot
from tests.unit.inspection.tasks import make_task

INFO = {"deploy_kernel": "http://web/k", "deploy_ramdisk": "http://web/r"}
PORTS = ({"address": "52:54:00:00:00:01"}, {"address": "52:54:00:00:00:02", "pxe_enabled": False})
PARAMETERS = {"ipa-inspection-callback-url": "http://api/v1/continue_inspection", "quiet": ""}


class Management:
    def __init__(self):
        self.devices = []

    def set_boot_device(self, task, device, persistent=False):
        self.devices.append((device, persistent))


@pytest.fixture
def management():
    return Management()


@pytest.fixture
def boot(conf, tmp_path, management):
    conf.set_override("http_root", str(tmp_path), group="deploy")
    conf.set_override("http_url", "http://web", group="deploy")
    return IPXEBoot(conf, lambda node, kind: management)


def test_each_port_that_boots_gets_a_script(boot, tmp_path, management):
    task = make_task({"driver_info": INFO}, PORTS)

    boot.prepare_ramdisk(task, PARAMETERS)

    (path,) = (tmp_path / "pxelinux.cfg").iterdir()
    assert path.name == "52-54-00-00-00-01"
    assert path.read_text().splitlines()[1] == (
        "kernel --name kernel http://web/k ipa-inspection-callback-url=http://api/v1/continue_inspection quiet "
        "BOOTIF=01-52-54-00-00-00-01 initrd=ramdisk || goto failed")
    assert management.devices == [("pxe", False)]
    assert (tmp_path / "boot.ipxe").read_text().startswith("#!ipxe\n")


RESCUE = {"rescue_kernel": "http://web/rk", "rescue_ramdisk": "http://web/rr"}


@pytest.mark.parametrize(("state", "info", "images"), [
    ("rescuing", RESCUE, ("http://web/rk", "http://web/rr")), ("rescue wait", RESCUE, ("http://web/rk", "http://web/rr")),
    ("rescuing", {}, ("http://web/k", "http://web/r")), ("cleaning", RESCUE, ("http://web/k", "http://web/r"))])
def test_a_rescue_has_its_own_ramdisk_if_the_node_does(boot, tmp_path, state, info, images):
    boot.prepare_ramdisk(make_task({"driver_info": {**INFO, **info}, "provision_state": state}, PORTS), PARAMETERS)

    (path,) = (tmp_path / "pxelinux.cfg").iterdir()
    assert all(image + " " in path.read_text().replace("\n", " ") for image in images)


@pytest.mark.parametrize(("info", "text"), [
    ({"rescue_kernel": "http://web/rk"}, "/driver_info/rescue_ramdisk: is missing: there is a rescue_kernel"),
    ({"rescue_ramdisk": "http://web/rr"}, "/driver_info/rescue_kernel: is missing"),
    ({**RESCUE, "rescue_kernel": "web"}, "/driver_info/rescue_kernel: must be a URL"),
    ({"rescue_iso": "x y"}, "/driver_info/rescue_iso: must be a URL"),
    ({"pxe_template": "/x"}, "/driver_info/pxe_template: is not supported")])
def test_settings_of_a_rescue_are_checked_before_and_during_it(conf, boot, info, text):
    conf.set_override("public_endpoint", "http://api", group="api")
    rescue = AgentRescue(conf, lambda node, kind: boot)
    task = make_task({"driver_info": {**INFO, **info}}, PORTS)

    for act in (lambda: rescue.validate(task), lambda: rescue.rescue(task)):
        with pytest.raises(InvalidParameterValue, match=text):
            act()


def test_it_is_safe_to_repeat_and_to_undo(boot, tmp_path):
    task = make_task({"driver_info": INFO}, PORTS)
    boot.prepare_ramdisk(task, PARAMETERS)
    boot.prepare_ramdisk(task, PARAMETERS)

    for port in task.ports:
        port.pxe_enabled = False
    boot.clean_up_ramdisk(task)
    boot.clean_up_ramdisk(task)

    assert list((tmp_path / "pxelinux.cfg").iterdir()) == []
    assert (tmp_path / "boot.ipxe").exists()


def test_the_scripts_of_ports_that_are_gone_go_too(boot, tmp_path):
    task = make_task({"driver_info": INFO}, [*PORTS, {"address": "52:54:00:00:00:03"}])
    boot.prepare_ramdisk(task, PARAMETERS)
    prepared = dict(task.node.driver_internal_info)

    # As after an inspection with keep_ports, or when an operator has changed the ports meanwhile.
    later = make_task({"driver_info": INFO, "driver_internal_info": prepared}, PORTS[1:])
    boot.clean_up_ramdisk(later)

    assert list((tmp_path / "pxelinux.cfg").iterdir()) == []
    assert later.node.driver_internal_info == {}


@pytest.mark.parametrize("url", [
    "http://web/k || shell", "http://web/k\nshell", "http://web/${x}", "http://web/$(x)", "http://web/'k",
    'http://web/"k',
    "http://web/k;x", "http://web/k\\", "javascript:x", "k", "", 7, "http://web/" + "x" * 2048, "http://web/k\t",
])
def test_urls_that_would_be_more_than_urls_are_refused(boot, tmp_path, url):
    task = make_task({"driver_info": {**INFO, "deploy_kernel": url}}, PORTS)

    with pytest.raises(InvalidParameterValue, match="deploy_kernel"):
        boot.validate_inspection(task)
    with pytest.raises(InvalidParameterValue, match="deploy_kernel"):
        boot.prepare_ramdisk(task, PARAMETERS)

    assert not (tmp_path / "pxelinux.cfg").exists()


@pytest.mark.parametrize("parameters", [
    {"a": "b c"}, {"a": "${net0/mac}"}, {"a": "b\nshell"}, {"a b": "c"}, {"a": "b|c"}, {"": "x"}, {"a": "'"},
])
def test_parameters_that_would_be_more_than_parameters_are_refused(boot, tmp_path, parameters):
    with pytest.raises(InvalidParameterValue, match="kernel parameter"):
        boot.prepare_ramdisk(make_task({"driver_info": INFO}, PORTS), parameters)

    assert not (tmp_path / "pxelinux.cfg").exists()


@pytest.mark.parametrize("address", ["../../etc/passwd", "52:54:00:00:00", "ff:ff:ff:ff:ff:ff", None])
def test_addresses_that_are_none_become_no_file_names(boot, address):
    task = make_task({"driver_info": INFO}, [{"address": address}])

    for call in (lambda: boot.prepare_ramdisk(task, PARAMETERS), lambda: boot.clean_up_ramdisk(task)):
        with pytest.raises(InvalidParameterValue, match="The address of port"):
            call()


def test_what_is_missing_is_told(boot, conf):
    with pytest.raises(InvalidParameterValue, match=r"Neither driver_info/deploy_kernel nor \[deploy\]deploy_kernel"):
        boot.validate_inspection(make_task({}, PORTS))
    with pytest.raises(InvalidParameterValue, match="no port with pxe_enabled"):
        boot.validate_inspection(make_task({"driver_info": INFO}, PORTS[1:]))
    conf.clear_override("http_url", group="deploy")
    with pytest.raises(InvalidParameterValue, match=r"\[deploy\]http_url"):
        boot.validate_inspection(make_task({"driver_info": INFO}, PORTS))


def test_the_configuration_serves_nodes_without_urls_of_their_own(boot, conf, tmp_path):
    for key, url in INFO.items():
        conf.set_override(key, url, group="deploy")

    boot.validate_inspection(make_task({}, PORTS))
    boot.prepare_ramdisk(make_task({}, PORTS), PARAMETERS)

    assert "http://web/r" in (tmp_path / "pxelinux.cfg" / "52-54-00-00-00-01").read_text()


def test_a_bmc_that_refuses_the_boot_device_is_an_error(boot, management):
    def refuse(task, device, persistent=False):
        raise BMCError(node="n", reason="no")

    management.set_boot_device = refuse

    with pytest.raises(BMCError):
        boot.prepare_ramdisk(make_task({"driver_info": INFO}, PORTS), PARAMETERS)
