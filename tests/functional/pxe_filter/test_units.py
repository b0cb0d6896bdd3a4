"""The files for systemd, dnsmasq and logrotate are accepted by those programs; test_systemd.py starts them."""

from __future__ import annotations

import configparser
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from ironic_rules import service
from ironic_rules.cmd import systemd
from tests.functional.processes import wait_for
from tests.functional.pxe_filter.network import _PATH, Network, network
from tests.functional.pxe_filter.site import Site
from tests.walking import walking

ROOT = Path(__file__).parents[3]
UNITS = sorted((ROOT / "etc" / "systemd" / "system").glob("*.service"))
DNSMASQ, OF_ONE_PROCESS = "ironic-inspection-dnsmasq", "ironic-rules-dnsmasq"
#: The most that `systemd-analyze security` may say.
EXPOSURE = {unit.stem: 4.0 if unit.stem in (DNSMASQ, OF_ONE_PROCESS) else 2.0 for unit in UNITS}


def parsed(name: str) -> configparser.ConfigParser:
    found = configparser.ConfigParser(strict=False, interpolation=None)
    found.optionxform = str  # type: ignore[assignment,method-assign]
    found.read(ROOT / "etc" / "systemd" / "system" / f"{name}.service")
    return found


def systemd_analyze(*arguments: str) -> subprocess.CompletedProcess[str]:
    if shutil.which("systemd-analyze", path=_PATH) is None:
        pytest.skip("systemd is not installed")
    return subprocess.run(["systemd-analyze", *arguments], capture_output=True, text=True,
                          env={**os.environ, "PATH": _PATH, "SYSTEMD_PAGER": "cat"})


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the units of the installation that runs the tests."""
    root = tmp_path_factory.mktemp("units")
    prefix = Path(sysconfig.get_path("scripts")).parent
    assert systemd.main(["--root", str(root), "--prefix", str(prefix), "--dnsmasq", "/bin/true"]) == 0
    return root / "etc" / "systemd" / "system"


def test_there_is_one_for_each_process():
    assert [unit.stem for unit in UNITS] == [
        DNSMASQ, "ironic-pxe-filter", "ironic-rules-api", "ironic-rules-conductor", OF_ONE_PROCESS, "ironic-rules"]


def test_systemd_accepts_them_with_the_paths_of_the_installation(installed: Path):
    done = systemd_analyze("verify", "--man=no", *map(str, sorted(installed.iterdir())))

    assert (done.returncode, [line for line in done.stderr.splitlines() if "ironic" in line]) == (0, [])


@pytest.mark.parametrize(("name", "most"), EXPOSURE.items())
def test_they_are_hardened(installed: Path, name: str, most: float):
    done = systemd_analyze("security", "--offline=true", "--no-pager", str(installed / f"{name}.service"))

    assert float(re.search(r"Overall exposure level for \S+: (\S+)", done.stdout)[1]) <= most, done.stdout


@pytest.mark.parametrize("name", [unit.stem for unit in UNITS if unit.stem not in (DNSMASQ, OF_ONE_PROCESS)])
def test_the_commands_start(installed: Path, name: str):
    command = re.search(r"^ExecStart=(.*)$", (installed / f"{name}.service").read_text(), re.MULTILINE)[1].split()
    done = subprocess.run([*command, "--help"], capture_output=True, text=True, timeout=60)

    assert done.returncode == 0, done.stderr
    assert "--config-file" in done.stdout


@walking("name", ["ironic-rules-api", "ironic-rules-conductor", "ironic-rules"])
def test_the_log_of_the_documented_configuration_can_be_written(name: str):
    conf = service.prepare_config([], config_files=[str(ROOT / "doc" / "source" / "install" / "ironic-rules.conf")])

    assert conf.log_dir in [f"/var/log/{folder}" for folder in parsed(name)["Service"]["LogsDirectory"].split()]


def test_no_restart_of_one_affects_another():
    for unit in UNITS:
        section = parsed(unit.stem)["Unit"]
        assert {"Requires", "Requisite", "BindsTo", "PartOf", "Upholds", "Conflicts"}.isdisjoint(section), unit
    assert "ironic-pxe-filter.service" in parsed(DNSMASQ)["Unit"]["After"].split()


def test_dnsmasq_has_the_user_of_the_filter_but_not_its_access_to_the_configuration():
    dnsmasq, own = parsed(DNSMASQ)["Service"], parsed("ironic-pxe-filter")["Service"]

    assert dnsmasq["User"] == own["User"]
    assert own["SupplementaryGroups"] == "ironic" and "SupplementaryGroups" not in dnsmasq
    assert "CAP_KILL" not in "".join(unit.read_text() for unit in UNITS)
    assert dnsmasq["CapabilityBoundingSet"] == dnsmasq["AmbientCapabilities"]

    # In one process, the service is the filter; dnsmasq sees nothing of it but the hosts files.
    dnsmasq, own = parsed(OF_ONE_PROCESS)["Service"], parsed("ironic-rules")["Service"]
    assert dnsmasq["User"] == own["User"]
    assert dnsmasq["TemporaryFileSystem"] == "/var/lib/ironic-rules:ro"
    assert dnsmasq["BindReadOnlyPaths"] == f"/var/lib/{own['StateDirectory'].split()[1]}"
    assert "/etc/ironic-rules" in dnsmasq["InaccessiblePaths"]


@pytest.mark.parametrize("name", [DNSMASQ, OF_ONE_PROCESS])
def test_dnsmasq_accepts_its_configuration(name):
    program = shutil.which("dnsmasq", path=_PATH)
    if program is None:
        pytest.skip("dnsmasq is not installed")
    done = subprocess.run([program, "--test", f"--conf-file={ROOT / 'etc' / (name + '.conf')}"],
                          capture_output=True, text=True)

    assert (done.returncode, done.stderr.strip()) == (0, "dnsmasq: syntax check OK.")


@pytest.fixture
def net(tmp_path: Path) -> Iterator[Network]:
    with network(tmp_path) as made:
        yield made


def test_an_empty_folder_serves_no_machine(site: Site, net: Network):
    """A filter that has never run: with the sample's configuration no machine gets an address."""
    sample = (ROOT / "etc" / f"{DNSMASQ}.conf").read_text()
    guard = re.findall(r"^dhcp-ignore=.*$", sample, re.MULTILINE)
    assert guard == ["dhcp-ignore=tag:!known"]
    unguarded = net.dnsmasq(site.folder)
    assert net.gets(site.mac())
    unguarded.stop()

    guarded = net.dnsmasq(site.folder, *(f"--{line}" for line in guard))
    assert not net.ask(mac := site.mac())
    assert guarded.text().count("read ") == 0

    # The lines of the filter allow, those of unknown addresses, too.
    site.machine("inspect wait")
    _, busy = site.machine()
    written = site.synced().statistics.written
    wait_for("the files to be read", lambda: guarded.text().count("read ") >= written)
    assert net.gets(mac)
    assert not net.ask(busy)


def test_the_guard_leaves_a_closed_network_closed(site: Site, net: Network):
    _, mac = site.machine("inspect wait")
    site.synced(deny_unknown_macs=True)
    net.dnsmasq(site.folder, "--dhcp-ignore=tag:!known")

    assert net.gets(mac)
    assert not net.ask(site.mac())


def test_logs_are_rotated_and_no_line_is_lost(tmp_path: Path):
    program = shutil.which("logrotate", path=_PATH)
    if program is None:
        pytest.skip("logrotate is not installed")
    folder = tmp_path / "ironic-rules"
    folder.mkdir(mode=0o700)
    text = (ROOT / "etc" / "logrotate.d" / "ironic-rules").read_text()
    text = re.sub(r"^    su .*\n", "", text, flags=re.MULTILINE).replace("/var/log/", f"{tmp_path}/")
    rules = tmp_path / "rules"
    rules.write_text(text)
    rules.chmod(0o644)
    (tmp_path / "service.conf").write_text(f"[DEFAULT]\nlog_dir = {folder}\nlog_file = a.log\n")
    # One process writes before and after, as a service does that runs for months.
    script = ("import logging, subprocess, sys\nfrom ironic_rules import service\n"
              f"service.setup_logging(service.prepare_config([], config_files=[{str(tmp_path / 'service.conf')!r}]))\n"
              "log = logging.getLogger('ironic_rules.test')\nlog.warning('the first line')\n"
              f"subprocess.run([{program!r}, '--force', '--state', {str(tmp_path / 'state')!r}, {str(rules)!r}], "
              "check=True)\nlog.warning('the second line')\n")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)

    assert done.returncode == 0, done.stderr
    assert "the first line" in (folder / "a.log.1").read_text()
    assert "the second line" in (folder / "a.log").read_text()
    assert "the second line" not in (folder / "a.log.1").read_text()
