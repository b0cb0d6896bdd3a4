"""The parts of the lab that need no machine: its files, its logs, and what it needs of the host."""

from __future__ import annotations

import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from ironic_rules import samples
from ironic_rules.cmd import systemd
from ironic_rules.exceptions import ConfigurationError
from ironic_rules.lab import host, machines, programs, rig
from ironic_rules.lab.machines import Machine
from tests.walking import walking

RACK = Path(rig.__file__).with_name("rack")
PAGE = Path(__file__).resolve().parents[3] / "doc" / "source" / "install" / "rack.rst"


def machine(firmware: str, folder: Path, **others: object) -> Machine:
    return Machine("first", firmware, folder, 3072, 2, "tcg", "eth1", **others)  # type: ignore[arg-type]


def test_the_page_has_the_commands_that_the_lab_runs() -> None:
    on_page = re.findall(r"literalinclude:: \S+/lab/rack/([\w-]+)\.sh", PAGE.read_text(encoding="utf-8"))
    code = "".join(path.read_text(encoding="utf-8") for path in (
        *RACK.parent.glob("*.py"), Path(rig.__file__).parents[1] / "cmd" / "lab.py"))
    # Installed before the lab can run; and the settings of the client, which are compared below.
    not_run = {"software", "client"}

    assert sorted(on_page) == sorted(file.stem for file in RACK.iterdir())
    assert [step for step in on_page if step not in not_run and f'"{step}"' not in code] == []


def test_the_client_of_the_lab_has_the_settings_of_the_page() -> None:
    exports = [word for line in rig.commands("client").splitlines() for word in shlex.split(line)[1:]]
    settings = dict(word.split("=", 1) for word in exports)
    environment = rig.environment({})

    assert settings.pop("PATH").split(":")[0] == environment["PATH"].split(":")[0]
    assert settings == {name: value for name, value in environment.items() if name.startswith("OS_")}


def test_the_addresses_of_the_lab_are_those_of_the_samples() -> None:
    sample = (Path(samples.__file__).parent / "host" / "dnsmasq" / "ironic-inspection-dnsmasq.conf").read_text()
    files = {file.path.name for file in systemd.files(Path("/"), "/opt/ironic-rules/bin", "/usr/sbin/dnsmasq")}

    assert f"\ninterface={rig.INTERFACE}\n" in sample
    assert f"http://{rig.SERVICE}:8080/boot.ipxe" in sample
    assert {f"{unit}.service" for unit in rig.started_units()} - {"nginx.service"} <= files


def test_a_drop_in_overrides_a_unit(tmp_path: Path) -> None:
    unit, drop_in = tmp_path / "a.service", tmp_path / "b.conf"
    unit.write_text("[Service]\nUser=one\nExecStart=/bin/x --y\n")
    drop_in.write_text("[Service]\nUser=two\n")

    assert programs.unit_settings([unit, drop_in]) == {"User": ["one", "two"], "ExecStart": ["/bin/x --y"]}


@walking("firmware, others", [
    ("bios", {}), ("uefi", {}), ("uefi", {"has_unplugged_adapter": True, "clock_s": -machines.TWO_YEARS_S})])
def test_machines_are_defined_by_xml(tmp_path: Path, firmware: str, others: dict[str, object]) -> None:
    made = machine(firmware, tmp_path, **others)
    tree = ElementTree.fromstring(machines.domain(made))
    loader = tree.find("os/loader")

    assert (loader is not None and loader.text == machines.FIRMWARE) == (firmware == "uefi")
    assert [adapter.attrib["address"] for adapter in tree.findall("devices/interface/mac")] == made.adapters
    assert len(tree.findall("devices/interface/link[@state='down']")) == len(made.adapters) - 1
    assert tree.findtext("uuid") == made.uuid


def test_a_console_that_begins_again_is_read_from_its_beginning(tmp_path: Path) -> None:
    file, told = tmp_path / "console", []
    recorder = programs.Recorder(lambda event: told.append(event.text))
    recorder.follow("console of first", file)
    file.write_bytes(b"Linux version 6.1 (debian)\r\nLinux ver")
    recorder._read(file)
    with file.open("ab") as more:
        more.write(b"sion 6.2 (debian)\n")
    recorder._read(file)
    file.write_bytes(b"Linux version 6.3 (debian)\n")
    recorder._read(file)

    assert told == ["Linux 6.1 starts", "Linux 6.2 starts", "Linux 6.3 starts"]


def test_the_last_lines_of_a_console_are_readable(tmp_path: Path) -> None:
    console = tmp_path / "console"
    console.write_bytes(b"one\r\n\x1b[2J\x1b[01;01H\r\n\x1b[0mtwo\x00\xff\r\n\r\nthree")

    assert programs.last_lines(console, 2) == "    two\n    three"
    assert programs.last_lines(tmp_path / "none") == "    (nothing)"


def test_a_kernel_of_another_architecture_is_none(tmp_path: Path) -> None:
    kernels = {
        "x86-64": bytes(0x202) + b"HdrS" + bytes(0x30) + b"\x3f\x00", "x86-32": bytes(0x202) + b"HdrS" + bytes(0x32),
        "arm64": bytes(0x38) + b"ARM\x64" + bytes(0x400), "empty": b"", "text": b"<html>404</html>" * 64}
    found = {}
    for name, content in kernels.items():
        (tmp_path / name).write_bytes(content)
        found[name] = host.is_kernel(tmp_path / name)

    assert found == {"x86-64": True, "x86-32": False, "arm64": False, "empty": False, "text": False}


def test_two_labs_do_not_run_at_once(tmp_path: Path) -> None:
    with host.locked(tmp_path / "lock"):
        with pytest.raises(ConfigurationError, match=r"Another lab runs on this computer \(process \d+\)"):
            host.locked(tmp_path / "lock")
    host.locked(tmp_path / "lock").close()


def test_the_first_process_tells_of_an_error(capfd: pytest.CaptureFixture[str]) -> None:
    previous = signal.getsignal(signal.SIGTERM)
    try:
        assert host.as_first_process(lambda: 1 // 0) == 70
        assert host.as_first_process(lambda: 3) == 3
    finally:
        signal.signal(signal.SIGTERM, previous)
    assert capfd.readouterr().err.endswith("ZeroDivisionError: integer division or modulo by zero\n")


def test_a_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert host.full(tmp_path) == ""
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10 << 20, 9 << 20, 1 << 20))
    assert host.full(tmp_path) == f"The disk is full, which may be the reason: {tmp_path} has 1 MiB of free space."


def test_what_a_killed_lab_has_left_is_removed(tmp_path: Path) -> None:
    (tmp_path / "machine" / "state").mkdir(parents=True)
    (tmp_path / "machine" / "state" / "disk").write_bytes(b"x")
    host.remove(tmp_path / "machine")

    assert list(tmp_path.iterdir()) == []


def test_the_lab_says_why_it_cannot_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host.os, "geteuid", lambda: 1000)
    assert list(host.problems(tmp_path, memory_mib=3072)) == [
        "it needs root, for namespaces, network interfaces and mounts: run it as root, or with sudo."]

    monkeypatch.setattr(host.os, "geteuid", lambda: 0)
    monkeypatch.setattr(host.platform, "machine", lambda: "aarch64")
    monkeypatch.setattr(host.shutil, "which", lambda name, path: None if name == "dnsmasq" else name)
    monkeypatch.setattr(host, "FILES", {})
    assert list(host.problems(tmp_path, memory_mib=3072)) == [
        "its machines and their ramdisk are for x86_64, and this one is aarch64.",
        "dnsmasq missing: apt-get install --no-install-recommends dnsmasq-base"]

    monkeypatch.setattr(host.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(host.shutil, "which", lambda name, path: name)
    monkeypatch.setattr(host, "TRIAL", ["sh", "-c", "echo not permitted >&2; false"])
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10 << 20, 9 << 20, 1 << 20))
    found = list(host.problems(tmp_path / "new" / "folder", memory_mib=1 << 30))
    assert found[0] == "namespaces, bridges or mounts are not permitted here: not permitted"
    assert found[1] == f"{tmp_path} has 1 MiB of free space, and 2000 are needed: choose another --folder."
    assert "MiB of memory are available" in found[2]


#: In a network namespace of its own, a computer in a network with the lab's addresses, and a second namespace.
LINKED = """
import os, subprocess, time
from ironic_rules.lab import host
for command in ("link add eth9 type bridge", "address add 192.0.2.2/24 dev eth9", "link set eth9 up"):
    host.run(["ip", *command.split()])
inner = subprocess.Popen(["unshare", "--net", "sleep", "60"])
while os.readlink(f"/proc/{inner.pid}/ns/net") == os.readlink("/proc/self/ns/net"):
    time.sleep(0.01)
print(*host.link_problems("192.0.2.10"), *host.link_problems("192.0.2.2"))
host.link(inner.pid)
host.route("192.0.2.10")
print(host.run(["ip", "route"]))
inner.kill()
"""


def test_the_page_of_a_kept_lab_takes_no_address_from_the_computer() -> None:
    if subprocess.run(host.TRIAL, capture_output=True).returncode:
        pytest.skip("namespaces are not permitted here")
    printed = subprocess.run(["unshare", "--net", sys.executable, "-c", LINKED], capture_output=True, text=True)

    problem, *routes = printed.stdout.splitlines()
    assert problem == ("this computer has the address 192.0.2.2, at which --keep would show the page of the lab's "
                       "service."), printed.stderr
    assert [line.split(" proto")[0].split(" linkdown")[0].strip() for line in routes[:2]] == [
        "192.0.2.0/24 dev eth9", f"192.0.2.10 via {host.INSIDE} dev {host.LINK}"]
