"""The files of a release agree: what is required, the exact versions of it, and the list of what it consists of."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.unit.entry_points import SETUP

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "etc" / "release"
#: The extras that the image has; tox.ini has the same ones.
EXTRAS = ("mysql", "postgresql", "keystone", "http-basic", "redfish", "metrics")
#: Extras of users' machines and of the lab.
NOT_OF_THE_IMAGE = {"client", "lab", "tracing"}


def required() -> Iterator[Requirement]:
    """Yield the requirements of the package with the extras of the image."""
    for text in ((ROOT / "requirements.txt").read_text(), *(SETUP["extras"][extra] for extra in EXTRAS)):
        for line in text.splitlines():
            if line := line.partition("#")[0].strip():
                yield Requirement(line)


def pinned() -> dict[str, tuple[str, int]]:
    """Return the version of each library, and the number of its hashes."""
    found = {}
    for block in re.split(r"\n(?=\S)", (FOLDER / "constraints.txt").read_text()):
        if named := re.match(r"([\w.-]+)(?:\[[\w,-]+\])?==(\S+)", block):
            found[canonicalize_name(named[1])] = (named[2], block.count("--hash=sha256:"))
    return found


def test_exact_versions_fit_what_is_required() -> None:
    found = pinned()
    assert [str(each) for each in required() if canonicalize_name(each.name) not in found
            or not each.specifier.contains(found[canonicalize_name(each.name)][0])] == [], "tox -e release"


def test_every_library_has_hashes_and_no_index() -> None:
    text = (FOLDER / "constraints.txt").read_text()
    assert [name for name, (_, hashes) in pinned().items() if not hashes] == []
    assert re.findall(r"^(?:-i|--index-url|--extra-index-url|--find-links).*|file://.*", text, re.MULTILINE) == []


def test_the_list_in_cyclonedx_has_the_same_versions() -> None:
    text = (FOLDER / "sbom.cdx.json").read_text()
    listed = {canonicalize_name(each["name"]): each["version"] for each in json.loads(text)["components"]}

    assert listed == {name: version for name, (version, _) in pinned().items()}, "tox -e release"
    assert json.loads(text)["bomFormat"] == "CycloneDX" and "file://" not in text
    assert [each["name"] for each in json.loads(text)["components"] if not each.get("licenses")] == []


def test_all_extras_are_considered() -> None:
    assert set(SETUP["extras"]) == {*EXTRAS, *NOT_OF_THE_IMAGE}
    line = re.search(r"^extras = (.*)$", (ROOT / "tox.ini").read_text(), re.MULTILINE)
    assert line and tuple(re.findall(r"--extra (\S+)", line[1])) == EXTRAS
