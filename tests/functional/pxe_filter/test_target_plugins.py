"""A target of another package, from its installation to a node that enters inspection."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ironic_rules.models import states
from tests.functional import plugins
from tests.functional.processes import wait_for
from tests.functional.pxe_filter.site import Site
from tests.functional.pxe_filter.test_process import command, running

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample package."""
    return plugins.install("sample_targets", tmp_path_factory.mktemp("plugin"))


@pytest.fixture
def with_plugin(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the sample package available to processes that are started from here."""
    monkeypatch.setenv("PYTHONPATH", str(installed))


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


def broken(site: Site, monkeypatch: pytest.MonkeyPatch, text: str) -> str:
    """Install a package with this module, whose target is the class ``Broken``; return what the filter says."""
    package = site.path / "broken"
    points = package / "broken_target-1.0.dist-info"
    points.mkdir(parents=True)
    (points / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-target\nVersion: 1.0\n")
    (points / "entry_points.txt").write_text("[ironic_rules.pxe_filter.targets]\nbroken = broken_target:Broken\n"
                                             "[oslo.config.opts]\nbroken = broken_target:list_opts\n")
    (package / "broken_target.py").write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(package))
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
