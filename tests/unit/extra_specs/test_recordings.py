"""Names of Nova 34.0.0 are known, and its verdicts on recorded names and values are ours, with listed exceptions."""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path
from typing import Any

import pytest

from ironic_rules.extra_specs import check, installed
from tests.walking import walking

RECORDING = Path(__file__).resolve().parents[2] / "vectors" / "extra_specs" / "nova-34.0.0.json"
#: Values in place of the parameters of Nova's names.
VALUES = {"group": "", "num": "0", "filter": "", "key": "ssd", "trait": "RAID", "resource": "GOLD"}

#: Differences of the verdict: the reason, and what the name and value match.
DEVIATIONS: list[tuple[str, str, re.Pattern[str]]] = [
    ("accept", "strict mode knows every key: names of other namespaces, of none, or that were removed",
     re.compile(r"(?!(hw|trait|resources|capabilities|quota|os|accel):)[^=]*=.*")),
    ("accept", "a name has at most 255 characters, also in Nova's API", re.compile(r"[^=]{256,}=.*")),
    ("accept", "an integer is digits, without blanks, underscores and other scripts' digits, and of 64 bits",
     re.compile(r"hw:numa_nodes=( 1|1 |1_000|١|1\n|9223372036854775808)")),
    ("accept", "a control character is in no value", re.compile(r"[^=]*=[^\n]*\n")),
    ("timeout", "a CPU map is parsed in linear time", re.compile(r"hw:numa_cpus\.0=1(,1-1){14}!")),
    ("reject", "bare-metal nodes have capabilities of any name", re.compile(r"capabilities:[A-Za-z0-9_.:-]+=.*")),
    ("reject", "Nova's driver for libvirt reads it, and its registry lacks it",
     re.compile("hw:maxphysaddr_mode=emulate")),
]


@functools.cache
def recorded() -> dict[str, Any]:
    return json.loads(RECORDING.read_text(encoding="utf-8"))


def concrete(name: str) -> str:
    return re.sub(r"\{(\w+)\}", lambda found: VALUES[found[1]], name)


def test_every_name_of_nova_is_known_with_its_type_and_its_limits():
    registry = installed.built_in()
    assert len(recorded()["registry"]) == 525
    for entry in recorded()["registry"]:
        lookup = registry.find(concrete(entry["name"]))
        assert lookup is not None, entry["name"]
        validator = lookup[0].validator
        assert (entry["name"], entry["type"], entry.get("min"), entry.get("max"), entry.get("deprecated", False)) == (
            entry["name"], validator.value["type"].__name__, validator.value.get("min"), validator.value.get("max"),
            validator.deprecated)
        assert set(entry.get("enum", [])) == set(validator.value.get("enum", [])), entry["name"]


def test_verdicts_are_novas_but_for_deviations_that_have_reasons():
    differing = []
    for name, value, verdict in recorded()["pairs"]:
        ours = "reject" if check.validate(name, value) else "accept"
        if ours != verdict:
            differing.append((verdict, f"{name}={value}"))
    unexplained = [pair for pair in differing if not any(
        verdict == pair[0] and pattern.fullmatch(pair[1]) for verdict, _, pattern in DEVIATIONS)]
    assert unexplained == []
    assert len(recorded()["pairs"]) == 1715
    assert len(differing) == 66


@walking("verdict, reason, pattern", DEVIATIONS)
def test_every_deviation_occurs(verdict, reason, pattern):
    assert any(verdict == theirs and pattern.fullmatch(f"{name}={value}")
               and (verdict == "reject") == (check.validate(name, value) is None)
               for name, value, theirs in recorded()["pairs"])


def test_permissive_mode_takes_what_nova_takes_of_cpu_maps():
    maps = [(name, value, verdict) for name, value, verdict in recorded()["pairs"]
            if re.fullmatch(r"hw:(numa_cpus\.\d+|cpu_\w+_mask)", name) and verdict != "timeout"]
    assert len(maps) > 30
    assert [(value, verdict) for name, value, verdict in maps
            if (check.validate(name, value, check.PERMISSIVE) is None) != (verdict == "accept")] == []


def test_the_installed_nova_has_nothing_that_is_unknown_here():
    """A newer Nova with another name or value fails this test, so that the definitions follow it."""
    nova = pytest.importorskip("nova.api.validation.extra_specs.validators")
    registry = installed.built_in()
    for name, theirs in nova.VALIDATORS.items():
        lookup = registry.find(concrete(name))
        assert lookup is not None, name
        if theirs.value.get("enum"):
            assert set(theirs.value["enum"]) <= set(lookup[0].validator.value["enum"]), name
