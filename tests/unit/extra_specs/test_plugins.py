"""Extra specs of other packages: what is taken, what comes first, and what a bad plug-in does."""

from __future__ import annotations

import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from ironic_rules.extra_specs import check, installed
from ironic_rules.extra_specs.validators import ExtraSpecValidator
from tests.walking import walking

SAMPLE = Path(__file__).resolve().parents[2] / "plugins" / "sample_extra_specs"


def validator(name: str, **more) -> ExtraSpecValidator:
    return ExtraSpecValidator(**{"name": name, "description": "A test.", "value": {"type": bool}, **more})


@pytest.fixture
def module(monkeypatch):
    """A module of a plug-in."""
    found = ModuleType("some_plugin")
    monkeypatch.setitem(sys.modules, "some_plugin", found)
    return found


def point(name: str, group: str = installed.LISTS, distribution: str = "some-plugin") -> EntryPoint:
    found = EntryPoint(name, f"some_plugin:{name}", group)
    vars(found)["dist"] = SimpleNamespace(name=distribution)
    return found


def loaded(*points: EntryPoint):
    registry = installed.built_in()
    installed.add_to(registry, points)
    return registry


def test_the_sample_package_has_both_kinds(monkeypatch):
    monkeypatch.syspath_prepend(str(SAMPLE))
    registry = loaded(EntryPoint("sample", "sample_extra_specs:VALIDATORS", installed.LISTS),
                      EntryPoint("sample", "sample_extra_specs_for_nova", installed.NOVA))

    assert registry.warnings == []
    specs = {"power:feeds": "2", "power:limit.0": "300", "cooling:kind": "air", "cooling:zone_b": "yes"}
    assert check.check(specs, registry=registry) == []
    found = check.check(dict.fromkeys(specs, "x"), registry=registry)
    assert [(problem.key, problem.kind) for problem in found] == [
        ("power:feeds", "type"), ("power:limit.0", "type"), ("cooling:kind", "enum"), ("cooling:zone_b", "type")]
    warning, = check.warnings({"power:source": "solar"}, registry=registry)
    assert "Use 'aggregate_instance_extra_specs:power' instead." in warning.text
    assert check.validate("power:feedz", "1", registry=registry).nearest == "power:feeds"


def test_entry_points_of_installed_packages_are_found(monkeypatch, tmp_path):
    installation = tmp_path / "sample_extra_specs-1.0.dist-info"
    installation.mkdir()
    (installation / "METADATA").write_text("Metadata-Version: 2.1\nName: sample-extra-specs\nVersion: 1.0\n")
    project = tomllib.loads((SAMPLE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (installation / "entry_points.txt").write_text("".join(
        f"[{group}]\n{name} = {value}\n" for group, points in project["entry-points"].items()
        for name, value in points.items()))
    for folder in (SAMPLE, tmp_path):
        monkeypatch.syspath_prepend(str(folder))
    registry = installed.built_in()
    installed.add_to(registry)

    assert registry.warnings == []
    assert {item.validator.name for item in registry if item.origin == "sample-extra-specs"} == {
        "power:feeds", "power:limit.{feed}", "power:source", "cooling:kind", "cooling:zone_{zone}"}


def test_definitions_of_this_package_come_first(module):
    module.ALL = [validator("hw:cpu_policy"), validator("trait:CUSTOM_RAID"), validator("trait:HW_CPU_X86_AVX"),
                  validator("hw:numa_cpus.{id}", parameters=[{"name": "id", "type": int}]), validator("foo:bar"),
                  validator("resources{n}:VCPU", parameters=[{"name": "n", "pattern": "[0-9]*"}])]
    registry = loaded(point("ALL"))

    assert [(warning.kind, warning.text.split(" ")[0]) for warning in registry.warnings] == [
        ("shadowed", "'hw:cpu_policy'"), ("shadowed", "'trait:CUSTOM_RAID'"), ("shadowed", "'trait:HW_CPU_X86_AVX'"),
        ("shadowed", "'hw:numa_cpus.{id}'"), ("shadowed", "'resources{n}:VCPU'")]
    assert registry.warnings[0].entry_point == "nova.extra_spec_validators: ALL = some_plugin:ALL"
    assert registry.warnings[0].distribution == "some-plugin"
    assert check.validate("hw:cpu_policy", "dedicated", registry=registry) is None
    assert check.validate("foo:bar", "true", registry=registry) is None
    assert registry.get("foo:bar").origin == "some-plugin"


def test_packages_come_in_the_order_of_their_names(module):
    module.LATE = [validator("foo:bar")]
    module.EARLY = [validator("foo:bar", value={"type": int})]
    registry = loaded(point("LATE", distribution="b-package"), point("EARLY", distribution="a-package"))

    assert registry.get("foo:bar").origin == "a-package"
    warning, = registry.warnings
    assert warning.distribution == "b-package"
    assert "by a-package as well" in warning.text


def test_plugins_can_refine_names_that_are_open(module):
    module.ALL = [validator("capabilities:burnt_in"),
                  validator("aggregate_instance_extra_specs:zone_{n}", parameters=[{"name": "n", "type": int}])]
    registry = loaded(point("ALL"))

    assert registry.warnings == []
    assert check.validate("capabilities:burnt_in", "maybe", registry=registry).kind == "type"
    assert check.validate("aggregate_instance_extra_specs:zone_1", "maybe", registry=registry).kind == "type"
    assert check.validate("aggregate_instance_extra_specs:zone_x", "maybe", registry=registry) is None


def test_plugins_can_define_what_nova_no_longer_has(module):
    module.ALL = [validator("powervm:{x}", parameters=[{"name": "x", "type": str}]), validator("os:monitors"),
                  validator("powervm:uncapped", value={"type": int})]
    registry = loaded(point("ALL"))

    assert registry.warnings == []
    assert check.check({"powervm:dedicated_proc": "true", "os:monitors": "no"}, registry=registry) == []
    assert check.validate("powervm:uncapped", "true", registry=registry).kind == "type"
    assert registry.get("powervm:{name}").origin == "some-plugin"
    assert len([item for item in registry if item.validator.name.startswith("powervm:")]) == 2
    assert check.validate("os:resolution", "1x1", registry=registry).kind == "unknown"


def test_novas_own_modules_are_skipped():
    nova = EntryPoint("hw", "nova.api.validation.extra_specs.hw", installed.NOVA)

    assert loaded(nova).warnings == []


class Hostile:
    """An object whose attributes cannot be read."""

    @property
    def name(self):
        raise RuntimeError("no name for you")


@walking("found, text", [
    (validator("foo:x", value={"type": float}), "not int, bool or str"),
    (validator("foo:x", value={"type": str, "pattern": "(?=a)"}), "not one of RE2"),
    (validator("foo:x", value={"type": str, "pattern": "("}), "not one of RE2"),
    (validator("foo:x", value={"type": int, "min": 2, "max": 1}), "no value is allowed"),
    (validator("foo:x", value={"type": int, "min": "1"}), "not an integer"),
    (validator("foo:x", value={"type": str, "enum": []}), "at least one"),
    (validator("foo:x", value={"type": str, "enum": [1]}), "list of texts"),
    (validator("foo:x", value={"type": str, "enum": "abc"}), "not a list"),
    (validator("foo:x", value={"type": str, "enum": ["a"], "pattern": "a"}), "only one can be"),
    (validator("foo:x", value={"type": str, "format": "nosuch"}), "no format nosuch"),
    (validator("foo:x", value=None), "not described by a mapping"),
    (validator("foo:x", value="int"), "not described by a mapping"),
    (validator("foo:x", description=" "), "no description"),
    (validator("foo:{x}"), "described are none"),
    (validator("foo:x", parameters=[{"name": "x", "type": int}]), "The parameters of the name are none"),
    (validator("foo:{x}", parameters=[{"name": "x"}]), "neither a type nor a pattern"),
    (validator("foo:{x}", parameters=[{"name": "x", "pattern": "("}]), "not one of RE2"),
    (validator("foo:{x}", parameters=[{"name": "x", "type": float}]), "neither int nor str"),
    (validator("foo:{x}{", parameters=[{"name": "x", "type": int}]), "brace"),
    (validator("foo:\n"), "not a printable text"),
    (validator(""), "not a printable text"),
    (validator(7), "not a printable text"),
    (validator("foo:x", drivers="libvirt"), "'drivers' is not a list of texts"),
    (validator("foo:x", replaced_by=7), "'replaced_by' is not a text"),
    (object(), "no validator"),
    (SimpleNamespace(name="foo:x", value={"type": int}), "without description"),
    (Hostile(), "RuntimeError: no name for you"),
])
def test_a_bad_definition_is_a_warning_and_the_others_work(module, found, text):
    module.ALL = [found, validator("foo:good")]
    registry = loaded(point("ALL"))

    warning, = registry.warnings
    assert warning.kind == "invalid"
    assert text in warning.text
    assert check.validate("foo:good", "true", registry=registry) is None


@pytest.mark.parametrize(("content", "text"), [
    (None, "NoneType is not a list"), ({"a": 1}, "dict is not a list"), ("abc", "str is not a list"),
    (7, "not a list")])
def test_what_is_no_list_is_a_warning(module, content, text):
    module.ALL = content
    warning, = loaded(point("ALL")).warnings
    assert warning.kind == "failed"
    assert text in warning.text


@pytest.mark.parametrize("error", [ImportError("no such module"), SystemExit(3), RecursionError("deep")])
def test_a_plugin_that_fails_is_a_warning(module, error):
    def register():
        raise error

    module.PLUGIN = SimpleNamespace(register=register)
    warning, = loaded(point("PLUGIN", installed.NOVA)).warnings
    assert warning.kind == "failed"
    assert type(error).__name__ in warning.text


def test_a_plugin_that_is_not_there_is_a_warning():
    missing = EntryPoint("gone", "no.such.module:THING", installed.LISTS)
    warning, = loaded(missing).warnings
    assert "ModuleNotFoundError" in warning.text
    assert warning.distribution == ""
