"""A target of another package, from its installation to a node that enters inspection."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from ironic_rules.models import states
from tests.functional import plugins
from tests.functional.processes import Process, wait_for
from tests.functional.pxe_filter.site import Site
from tests.functional.pxe_filter.test_process import command, running

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def installed() -> Path:
    """The sample package."""
    return plugins.installed("sample_targets")


@pytest.fixture
def with_plugin(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the sample package available to processes that are started from here."""
    monkeypatch.setenv("PYTHONPATH", str(installed), prepend=os.pathsep)


def refused(site: Site, **options: Any) -> str:
    """Run a filter that does not start, and return the last line that it prints, which says why."""
    done = command(site, "--once", dhcp_hostsdir="", **options)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr.splitlines()[-1]


def test_it_follows_a_node_and_repairs_what_others_change(site: Site, with_plugin: None) -> None:
    (node, mac), (_, other) = site.machine(), site.machine()
    file = site.path / "verdicts.json"

    def says(**verdicts: bool) -> None:
        expected = {"unknown": verdicts.pop("unknown"), mac: verdicts.pop("mac"), other: False}
        wait_for(f"the file to say {expected}", lambda: json.loads(file.read_text()) == expected)

    with running(site, target="sample-json", dhcp_hostsdir="", sample_json_file=file) as process:
        says(unknown=False, mac=False)
        site.move(node, states.INSPECTWAIT)
        says(unknown=True, mac=True)
        process.printed(f"{mac} is allowed")
        assert f"{file}\tin effect" in command(
            site, "--status", target="sample-json", dhcp_hostsdir="", sample_json_file=file).stdout

        file.write_text("{}")
        says(unknown=True, mac=True)
        site.move(node, states.MANAGEABLE)
        says(unknown=False, mac=False)
        assert "no process reads" not in process.text()
        assert "Traceback" not in process.text()


def test_one_of_several_targets_has_its_own_option(site: Site, with_plugin: None) -> None:
    _, mac = site.machine(states.INSPECTWAIT)
    files = [site.path / f"{name}.json" for name in ("both", "own")]
    sections = (f"[pxe_filter:rack1]\ntarget = sample-json\n"
                f"[pxe_filter:rack2]\ntarget = sample-json\nsample_json_file = {files[1]}\n"
                f"[pxe_filter:rack3]\ndhcp_hostsdir = {site.folder}\n")

    done = command(site, "--once", dhcp_hostsdir="", targets="rack1,rack2,rack3", sample_json_file=files[0],
                   sections=sections)

    assert done.returncode == 0, done.stderr
    assert [json.loads(file.read_text()) for file in files] == [{"unknown": True, mac: True}] * 2
    assert site.verdicts() == {"*": True, mac: True}
    assert "no process reads" not in done.stderr


def test_without_the_package_the_target_is_unknown(site: Site) -> None:
    assert ("[pxe_filter]target names 'sample-json', which nothing installed offers in "
            "ironic_rules.pxe_filter.targets. Installed: 'hostsdir', 'kea'.") in refused(site, target="sample-json")


def test_an_option_that_it_refuses_is_told_in_one_line(site: Site, with_plugin: None) -> None:
    assert "[pxe_filter]sample_json_file is not set." in refused(site, target="sample-json")


RAISING = """
from pathlib import Path
from sample_pxe_filter_target import JsonTarget

class Raising(JsonTarget):
    def apply(self, batch):
        if Path(self.name + ".broken").exists():
            raise ZeroDivisionError("no such switch")
        return super().apply(batch)
"""


def test_what_one_raises_is_told_and_retried_and_the_others_go_on(site: Site, installed: Path,
                                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    """A plugin that raises at the start, and again while the filter runs."""
    package = module(site, "raising_target", RAISING, "raising = raising_target:Raising")
    monkeypatch.setenv("PYTHONPATH", f"{installed}{os.pathsep}{package}", prepend=os.pathsep)
    file, marker = site.path / "raising.json", site.path / "raising.json.broken"
    marker.touch()
    node, mac = site.machine()
    sections = (f"[pxe_filter:rack1]\ntarget = raising\nsample_json_file = {file}\n"
                f"[pxe_filter:rack2]\ndhcp_hostsdir = {site.folder}\n")
    options = site.config_file("raising", sections, targets="rack1,rack2", dhcp_hostsdir="", sync_period=1)
    process = Process("ironic_rules.cmd.pxe_filter", ["--config-file", str(options)], site.path, "raising")
    told = f"Cannot write into {file}: ZeroDivisionError('no such switch')"
    try:
        process.printed(re.escape(told))
        for allowed in (True, False):
            site.move(node, states.INSPECTWAIT if allowed else states.MANAGEABLE)
            site.reaches({mac: allowed, "*": allowed})
        assert not file.exists()
        marker.unlink()
        process.printed(f"{re.escape(str(file))} can be written again and is up to date")
        process.printed("is running")
        assert json.loads(file.read_text()) == {"unknown": False, mac: False}

        marker.touch()
        site.move(node, states.INSPECTWAIT)
        site.reaches({mac: True, "*": True})
        wait_for("the second message", lambda: process.text().count(told) == 2)
        assert json.loads(file.read_text()) == {"unknown": False, mac: False}
        marker.unlink()
        wait_for("the file", lambda: json.loads(file.read_text()) == {"unknown": True, mac: True})
        # Once for each time that it begins, not for each attempt.
        assert process.text().count("Traceback") == 2
    finally:
        process.close()


def module(site: Site, name: str, text: str, point: str, more: str = "") -> Path:
    """Write a package with one module and the entry point of a target, as it is when installed; return its folder."""
    package = site.path / name
    points = package / f"{name}-1.0.dist-info"
    points.mkdir(parents=True)
    (points / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: 1.0\n")
    (points / "entry_points.txt").write_text(f"[ironic_rules.pxe_filter.targets]\n{point}\n{more}")
    (package / f"{name}.py").write_text(text)
    return package


def broken(site: Site, monkeypatch: pytest.MonkeyPatch, text: str) -> str:
    """Install a package with this module, whose target is the class ``Broken``; return what the filter says."""
    package = module(site, "broken_target", text, "broken = broken_target:Broken",
                     "[oslo.config.opts]\nbroken = broken_target:list_opts\n")
    monkeypatch.setenv("PYTHONPATH", str(package), prepend=os.pathsep)
    return refused(site, target="broken", broken_number="none")


TARGET = """from oslo_config import cfg
from ironic_rules.pxe_filter.targets.base import Target

NUMBER = cfg.IntOpt("broken_number", min=1)

def list_opts():
    return [("pxe_filter", [NUMBER])]

class Broken(Target):
"""


@pytest.mark.parametrize(("lines", "reason"), [
    ("    opts = [NUMBER]", "/command.conf: [pxe_filter]broken_number = none: "),
    ("    make = classmethod(lambda cls, settings, layout: [cls()])",
     "[pxe_filter]target: 'broken' cannot be used: TypeError(\"Can't instantiate abstract class Broken"),
    ("    opts = [cfg.IntOpt('target')]",
     "[pxe_filter]: options of the target cannot be registered: duplicate option: target"),
    ("    pass\nBroken = 1",
     "[pxe_filter]target: 'broken' (broken_target:Broken) is not a class derived from "
     "ironic_rules.pxe_filter.targets.base.Target."),
    ("    pass\nimport nowhere", "[pxe_filter]target: 'broken' cannot be loaded: ModuleNotFoundError("),
], ids=["value", "abstract", "option", "class", "import"])
def test_a_broken_target_is_told_in_one_line(site: Site, monkeypatch: pytest.MonkeyPatch, lines: str,
                                             reason: str) -> None:
    assert reason in broken(site, monkeypatch, TARGET + lines)
