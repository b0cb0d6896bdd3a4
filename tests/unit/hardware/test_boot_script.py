"""``boot.ipxe``, with which machines begin that boot over the network."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from oslo_config import cfg

from ironic_rules.exceptions import ConfigurationError
from ironic_rules.hardware.boot import ipxe

RAMDISK = {("deploy", "deploy_kernel"): "http://web/k", ("deploy", "deploy_ramdisk"): "http://web/r",
           ("api", "public_endpoint"): "http://api/"}
DISCOVERY = {("auto_discovery", "enabled"): True}


@pytest.fixture
def configured(conf: cfg.ConfigOpts, tmp_path: Path) -> Any:
    def configure(options: dict[tuple[str, str], Any]) -> cfg.ConfigOpts:
        for (group, name), value in {("deploy", "http_root"): str(tmp_path), **options}.items():
            conf.set_override(name, value, group=group)
        return conf
    return configure


def script(conf: cfg.ConfigOpts) -> str:
    return ipxe.boot_script(conf).decode()


def goes_to(text: str) -> str:
    """Return the label with which a machine without a script continues."""
    [label] = re.findall(r"^:unknown\ngoto (\w+)$", text, re.MULTILINE)
    assert f"\n:{label}\n" in text
    return str(label)


@pytest.mark.parametrize(("options", "expected"), [
    ({}, "next"),
    (RAMDISK, "next"),
    (DISCOVERY, "next"),  # what it needs is not configured
    ({**RAMDISK, **DISCOVERY}, "inspect"),
    ({**RAMDISK, ("pxe", "unknown_machines"): "inspect"}, "inspect"),
    ({**RAMDISK, **DISCOVERY, ("pxe", "unknown_machines"): "next"}, "next"),
    ({**RAMDISK, **DISCOVERY, ("pxe", "ipxe_fallback_script"): "mine.ipxe"}, "script"),
    ({**RAMDISK, ("pxe", "ipxe_fallback_script"): "mine.ipxe", ("pxe", "unknown_machines"): "inspect"}, "inspect"),
])
def test_machines_without_a_script_of_their_own(configured: Any, options: dict[tuple[str, str], Any],
                                                expected: str) -> None:
    assert goes_to(script(configured(options))) == expected


def test_it_boots_the_ramdisk_with_what_is_configured(configured: Any) -> None:
    lines = script(configured({**RAMDISK, **DISCOVERY, ("inspector", "extra_kernel_params"): "console=ttyS0"}))

    assert ("kernel --name kernel http://web/k ipa-inspection-callback-url=http://api/v1/continue_inspection "
            "console=ttyS0 BOOTIF=01-${boot-mac} initrd=ramdisk || goto failed\n"
            "initrd --name ramdisk http://web/r || goto failed\n") in lines
    assert "@" not in lines


def test_its_own_options_precede(configured: Any) -> None:
    lines = script(configured({
        **RAMDISK, **DISCOVERY, ("inspector", "extra_kernel_params"): "console=ttyS0", ("pxe", "kernel"): "http://x/k",
        ("pxe", "ramdisk"): "http://x/r", ("pxe", "kernel_append_params"): "", ("pxe", "callback_url"): "http://x:1"}))

    assert ("http://x/k ipa-inspection-callback-url=http://x:1/v1/continue_inspection BOOTIF=01-${boot-mac} "
            "initrd=ramdisk") in lines
    assert "initrd --name ramdisk http://x/r ||" in lines


@pytest.mark.parametrize(("options", "missing"), [
    ({}, r"\[pxe\]kernel nor \[deploy\]deploy_kernel"),
    ({("pxe", "kernel"): "http://x/k"}, r"\[pxe\]ramdisk nor"),
    ({("pxe", "kernel"): "http://x/k", ("pxe", "ramdisk"): "http://x/r"}, r"set \[pxe\]callback_url, "),
    ({**RAMDISK, ("pxe", "kernel"): "http://x/k||shell"}, r"\[pxe\]kernel must be a URL"),
    ({**RAMDISK, ("pxe", "kernel_append_params"): "a=|b"}, "kernel parameter 'a'"),
])
def test_what_was_requested_and_cannot_be_done_is_refused(configured: Any, options: dict[tuple[str, str], Any],
                                                          missing: str) -> None:
    with pytest.raises(ConfigurationError, match=missing):
        script(configured({**options, ("pxe", "unknown_machines"): "inspect"}))


@pytest.mark.parametrize(("options", "missing"), [
    ({("pxe", "unknown_machines"): "script"}, "ipxe_fallback_script is not set"),
    ({("pxe", "ipxe_fallback_script"): "a b"}, "must be the name of a file or a URL"),
    ({("pxe", "ipxe_boot_script"): "/nowhere"}, "cannot be read: No such file"),
])
def test_options_that_do_not_fit_are_refused(configured: Any, options: dict[tuple[str, str], Any],
                                             missing: str) -> None:
    with pytest.raises(ConfigurationError, match=missing):
        script(configured(options))


@pytest.mark.parametrize(("text", "problem"), [
    ("#!ipxe\necho @{kernal}\n", "kernal"), ("#!ipxe\n# root@host\n", "host"), ("#!ipxe\n# @ \n", "single @"),
    ("echo\n", "must begin"),
])
def test_a_template_that_cannot_be_used_is_refused(configured: Any, tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "template").write_text(text)

    with pytest.raises(ConfigurationError, match=problem):
        script(configured({("pxe", "ipxe_boot_script"): str(tmp_path / "template")}))


def test_a_template_replaces_the_script(configured: Any, tmp_path: Path) -> None:
    (tmp_path / "template").write_text("#!ipxe\nkernel @{kernel} a@@b\n")

    lines = script(configured({**RAMDISK, ("pxe", "ipxe_boot_script"): str(tmp_path / "template")})).splitlines()

    assert (lines[0], lines[2:]) == ("#!ipxe", ["kernel http://web/k a@b"])


def test_it_is_written_again_when_options_change(configured: Any, tmp_path: Path) -> None:
    ipxe.write_boot_script(configured({}))
    before = (tmp_path / "boot.ipxe").read_text()
    ipxe.write_boot_script(configured({**RAMDISK, **DISCOVERY}))

    after = (tmp_path / "boot.ipxe").read_text()
    assert (goes_to(before), goes_to(after)) == ("next", "inspect")
    assert not ipxe.is_of_operator(configured({}))


@pytest.mark.parametrize("change", [
    lambda text: "#!ipxe\nsanboot http://mine\n", lambda text: text.replace("sleep 5", "sleep 1"),
    lambda text: "#!ipxe \n" + text.partition("\n")[2], lambda text: "", lambda text: text + "# mine\n",
])
def test_what_an_operator_wrote_or_changed_remains(configured: Any, tmp_path: Path, change: Any) -> None:
    file = tmp_path / "boot.ipxe"
    ipxe.write_boot_script(configured({}))
    file.write_text(own := change(file.read_text()))

    ipxe.write_boot_script(configured({**RAMDISK, **DISCOVERY}))

    assert file.read_text() == own
    assert ipxe.is_of_operator(configured({}))
