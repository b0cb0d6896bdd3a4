"""The vendored files of the page are those that their descriptions and lock files name."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
VENDOR = ROOT / "ironic_rules" / "ui" / "vendor"
#: Bytes of the whole page, compressed.
MAX_PAGE = 320_000


def test_the_icons_are_the_described_ones_of_a_locked_version_with_its_licence():
    described = json.loads((VENDOR / "icons.json").read_text())
    content = (VENDOR / described["file"]).read_bytes()
    lock = json.loads((ROOT / "tools" / "icons" / "package-lock.json").read_text())["packages"]
    package, = described["packages"]
    locked = lock[f"node_modules/{package['name']}"]
    source = "".join(path.read_text() for path in VENDOR.parent.rglob("*.js") if path.parent != VENDOR)

    assert hashlib.sha256(content).hexdigest() == described["sha256"]
    assert (locked["version"], locked["license"]) == (package["version"], package["license"])
    assert (VENDOR / "icons-licence.txt").read_text().startswith(f"{package['name']} {package['version']}\n\nISC ")
    assert set(re.findall(r'icon\("([a-z0-9-]+)"', source)) <= set(described["names"])


def test_the_bundle_is_the_described_one_of_locked_versions_with_their_licences():
    described = json.loads((VENDOR / "editor.json").read_text())
    content = (VENDOR / described["file"]).read_bytes()
    lock = json.loads((ROOT / "tools" / "editor" / "package-lock.json").read_text())["packages"]
    licences = (VENDOR / "editor-licences.txt").read_text()

    assert hashlib.sha256(content).hexdigest() == described["sha256"]
    for package in described["packages"]:
        locked = lock[f"node_modules/{package['name']}"]
        assert (locked["version"], locked["license"]) == (package["version"], package["license"])
        assert f"{package['name']} {package['version']}\n\n" in licences
        assert f" * {package['name']} {package['version']} ({package['license']})\n" in content[:4096].decode()


def test_the_whole_page_is_small():
    files = [path for path in (ROOT / "ironic_rules" / "ui").rglob("*") if path.is_file() and path.suffix != ".txt"]

    assert sum(len(gzip.compress(path.read_bytes())) for path in files) < MAX_PAGE
