"""The files for systemd and dnsmasq in the package are accepted by those programs."""

from __future__ import annotations

import configparser
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from ironic_rules.cmd import pxe_filter
from tests.functional.pxe_filter.network import _PATH

FOLDER = Path(__file__).parents[3] / "etc" / "ironic-rules" / "systemd"
UNITS = sorted(FOLDER.glob("*.service"))


def test_there_is_one_for_the_filter_and_one_for_dnsmasq():
    assert [unit.name for unit in UNITS] == ["ironic-inspection-dnsmasq.service", "ironic-pxe-filter.service"]


def test_systemd_accepts_them(tmp_path):
    if shutil.which("systemd-analyze", path=_PATH) is None:
        pytest.skip("systemd is not installed")
    # Together, as one names the other; the paths of their commands need not exist on this machine.
    for unit in UNITS:
        text = unit.read_text().replace("/usr/sbin/dnsmasq", "/bin/true")
        (tmp_path / unit.name).write_text(text)
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", *sorted(map(str, tmp_path.iterdir()))],
                          capture_output=True, text=True, env={**os.environ, "PATH": _PATH})

    assert (done.returncode, [line for line in done.stderr.splitlines() if "ironic" in line]) == (0, [])


def test_dnsmasq_accepts_its_configuration():
    program = shutil.which("dnsmasq", path=_PATH)
    if program is None:
        pytest.skip("dnsmasq is not installed")
    done = subprocess.run([program, "--test", f"--conf-file={FOLDER / 'inspection-dnsmasq.conf'}"], capture_output=True,
                          text=True)

    assert (done.returncode, done.stderr.strip()) == (0, "dnsmasq: syntax check OK.")


def test_the_filter_is_ready_before_dnsmasq_starts():
    dnsmasq, own = (configparser.ConfigParser(strict=False, interpolation=None) for _ in UNITS)
    dnsmasq.read(UNITS[0])
    own.read(UNITS[1])

    assert "ironic-pxe-filter.service" in dnsmasq["Unit"]["After"].split()
    assert own["Service"]["Type"] == "notify"
    assert int(own["Service"]["WatchdogSec"]) > 60
    assert "ironic-pxe-filter " in own["Service"]["ExecStart"]
    assert callable(pxe_filter.main)
