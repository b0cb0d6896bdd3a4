"""E-01 to E-26, as far as no API is needed: the promises of the document about extra specs."""

from __future__ import annotations

import inspect
import io
import json
import re
from pathlib import Path

import pytest
from sphinx.application import Sphinx

from ironic_rules.cmd import extra_specs as command
from ironic_rules.extra_specs import check, definitions, installed, output
from ironic_rules.extra_specs.registry import SpecRegistry
from ironic_rules.extra_specs.validators import ExtraSpecValidator
from ironic_rules.extra_specs.values import BadDefinition
from tests.unit.doc_extensions import extension
from tests.walking import walking

REGISTRY = installed.built_in()
ROOT = Path(__file__).resolve().parents[3]
#: The document's examples, word for word but for the descriptions and the expression of CPU maps.
NUMA_NODE = ExtraSpecValidator(
    name="hw:numa_nodes", description="The number of NUMA nodes.",
    value={"type": int, "description": "The number of virtual NUMA nodes to allocate", "min": 1})
NUMA_CPU = ExtraSpecValidator(
    name="hw:numa_cpu.{id}", description="A mapping of CPUs.",
    parameters=[{"name": "id", "type": int, "description": "The ID of the **guest** NUMA node."}],
    value={"type": str, "description": "The guest CPUs.", "pattern": r"\^?\d+((-\d+)?(,\^?\d+(-\d+)?)?)*"})
CUSTOM_SCHEDULER = ExtraSpecValidator(
    name="foo:bar", description="A custom, out-of-tree validator",
    value={"type": bool, "description": "Whether to allow the instance to do something"})


def only(*validators: ExtraSpecValidator) -> SpecRegistry:
    registry = SpecRegistry("extra spec")
    for validator in validators:
        registry.add(validator, "a-plugin")
    return registry


def test_e_01_keys_and_values_are_described():
    for item in REGISTRY:
        assert item.rule
        assert REGISTRY.get(item.validator.name) is item
    assert check.validate("hw:cpu_policy", "dedicated") is None
    assert check.validate("hw:cpu_polic", "dedicated").kind == "unknown"
    assert check.validate("hw:cpu_policy", "dedicate").kind == "enum"


def test_e_02_a_name_has_parameters_and_is_literal_otherwise():
    registry = only(NUMA_CPU)
    assert check.validate("hw:numa_cpu.3", "0-3", registry=registry) is None
    for key in ("hw:numa_cpuX3", "hw:numa_cpu.x", "hw:numa_cpu.", "hw:numa_cpu.3.1", "hw:numa_cpu.{id}"):
        assert check.validate(key, "0-3", registry=registry).kind == "unknown"


def test_e_03_everything_has_a_description():
    for item in [*REGISTRY, *installed.image_properties()]:
        assert item.validator.description.endswith("."), item.validator.name
        assert item.validator.value["description"].endswith((".", "``.")), item.validator.name
        assert all(parameter.description for parameter in item.template.parameters), item.validator.name


def test_e_04_a_status_is_supported_deprecated_or_removed():
    statuses = {item.validator.status for item in REGISTRY}
    assert statuses == {"supported", "deprecated", "removed"}
    warning, = check.warnings({"hide_hypervisor_id": "true"})
    assert (warning.kind, "Use 'hw:hide_hypervisor_id' instead." in warning.text) == ("deprecated", True)
    for item in [*REGISTRY, *installed.image_properties()]:
        if item.validator.status != "supported":
            assert item.validator.replaced_by or item.validator.advice, item.validator.name


def test_e_04_what_is_to_be_used_instead_exists():
    for registry in (REGISTRY, installed.image_properties()):
        for item in registry:
            name = item.validator.replaced_by
            found = registry.get(name) or registry.find(name) if name else None
            assert not name or found, item.validator.name


@walking("value, good, bad", [
    ({"type": int, "min": 1, "max": 3}, ["1", "3"], ["0", "4", "x", ""]),
    ({"type": bool}, ["true", "No", "1"], ["2", "", "maybe"]),
    ({"type": str, "pattern": "a+"}, ["a", "aa"], ["", "ab", "ba", "a\n"]),
    ({"type": str, "enum": ["a", "b"]}, ["a", "b"], ["c", "A", ""]),
    ({"type": str}, ["", "anything at all"], []),
])
def test_e_05_a_value_is_an_integer_a_boolean_or_a_text(value, good, bad):
    registry = only(ExtraSpecValidator("x:y", "A test.", value))
    assert [text for text in good if check.validate("x:y", text, registry=registry)] == []
    assert [text for text in bad if not check.validate("x:y", text, registry=registry)] == []


def test_e_05_another_type_is_refused_when_it_is_registered():
    for kind in (float, list, "int", None):
        with pytest.raises(BadDefinition):
            only(ExtraSpecValidator("x:y", "A test.", {"type": kind}))


@walking("value, parameters, text", [
    ({"type": int, "minimum": 5}, (), "of type int, cannot have 'minimum'; did you mean 'min'?"),
    ({"type": int, "pattern": "a+"}, (), "of type int, cannot have 'pattern'; known: description, max, min, type."),
    ({"type": int, "enum": [1, 2]}, (), "of type int, cannot have 'enum'"),
    ({"type": bool, "enum": ["true"]}, (), "of type bool, cannot have 'enum'; known: description, type."),
    ({"type": str, "max": 5}, (), "of type str, cannot have 'max'"),
    ({"type": str, "patern": "a+"}, (), "did you mean 'pattern'?"),
    ({"type": bool}, [{"name": "id", "type": int, "min": 1}], "Parameter 'id' cannot have 'min'"),
])
def test_e_05_what_would_not_be_checked_is_refused_when_it_is_registered(value, parameters, text):
    with pytest.raises(BadDefinition) as refused:
        only(ExtraSpecValidator("x:{id}" if parameters else "x:y", "A test.", value, parameters))
    assert text in str(refused.value)


def test_e_05_a_limit_that_is_none_is_no_limit():
    assert only(ExtraSpecValidator("x:y", "A test.", {"type": int, "min": None, "enum": None}))


def test_e_06_drivers_are_documented():
    item = REGISTRY.get("vmware:hw_version")
    assert output.describe(item)["drivers"] == ["vmware"]
    assert ":Drivers: vmware" in output.rst_page([item])


def test_e_07_what_belongs_together_is_documented_and_exists():
    assert ":Together with: ``hw:numa_nodes``" in output.rst_page([REGISTRY.get("hw:numa_mem.{num}")])
    for registry in (REGISTRY, installed.image_properties()):
        for item in registry:
            for name in item.validator.requires:
                assert registry.get(name), (item.validator.name, name)


def test_e_08_definitions_are_python_objects_of_this_package():
    assert {type(validator) for validator in definitions.extra_specs()} == {ExtraSpecValidator}
    assert len(REGISTRY) > 130


def test_e_09_a_validator_has_the_documents_parameters():
    parameters = inspect.signature(ExtraSpecValidator).parameters
    assert {"name", "description", "value", "parameters"} <= parameters.keys()
    assert [name for name, parameter in parameters.items() if parameter.default is parameter.empty] == [
        "name", "description", "value"]
    registry = only(NUMA_NODE)
    assert check.validate("hw:numa_nodes", "1", registry=registry) is None
    assert check.validate("hw:numa_nodes", "0", registry=registry).kind == "range"


def test_e_10_a_parameter_has_a_type_or_novas_pattern():
    parameter, = output.describe(only(NUMA_CPU).get("hw:numa_cpu.{id}"))["parameters"]
    assert parameter["description"] == "The ID of the **guest** NUMA node."
    registry = only(ExtraSpecValidator("x:{y}", "A test.", {"type": bool}, [{"name": "y", "pattern": "a|b"}]))
    assert [check.validate(f"x:{name}", "1", registry=registry) is None for name in ("a", "b", "ab", "c")] == [
        True, True, False, False]


def test_e_11_plugins_have_less_precedence(monkeypatch):
    from importlib.metadata import EntryPoint
    monkeypatch.syspath_prepend(str(ROOT / "tests" / "plugins" / "sample_extra_specs"))
    registry = installed.built_in()
    installed.add_to(registry, [EntryPoint("sample", "sample_extra_specs:VALIDATORS", "nova.extra_spec_validators")])
    assert check.validate("power:feeds", "2", registry=registry) is None
    assert installed.GROUPS == ("nova.extra_spec_validators", "nova.api.extra_spec_validators")


def test_e_12_problems_point_into_the_body_of_a_request():
    problem, = check.check({"hw:cpu_policy": "x"}, pointer="/extra_specs")
    assert problem.pointer == "/extra_specs/hw:cpu_policy"


def test_e_13_without_validation_everything_is_accepted():
    assert check.check({"hw:cpu_policy": "deddddicated", "hw:cpu_pollllicy": "x"}, check.OFF) == []


def test_e_14_strict_is_the_default_and_refuses_what_is_unknown():
    for key in ("hw:cpu_pollllicy", "foo:bar", "nonsense"):
        assert check.validate(key, "1").kind == "unknown"
        assert check.validate(key, "1", check.STRICT).kind == "unknown"


def test_e_15_permissive_accepts_unknown_keys_and_names_them():
    specs = {"foo:bar": "1", "hw:cpu_policy": "deddddicated"}
    assert [problem.key for problem in check.check(specs, check.PERMISSIVE)] == ["hw:cpu_policy"]
    assert [warning.key for warning in check.warnings(specs, check.PERMISSIVE)] == ["foo:bar"]


def test_e_16_off_neither_checks_nor_warns():
    specs = {"foo:bar": None, "hide_hypervisor_id": "x"}
    assert check.check(specs, check.OFF) == check.warnings(specs, check.OFF) == []


def test_e_17_there_are_three_modes():
    assert check.MODES == ("strict", "permissive", "off")


def test_e_18_a_misspelt_value_is_named():
    problem = check.validate("hw:cpu_policy", "deddddicated")
    assert (problem.kind, problem.nearest) == ("enum", "dedicated")


def test_e_19_a_misspelt_key_is_named():
    problem = check.validate("hw:cpu_pollllicy", "dedicated")
    assert (problem.kind, problem.nearest) == ("unknown", "hw:cpu_policy")


def test_e_20_validators_for_filters_of_others_work():
    registry = only(CUSTOM_SCHEDULER)
    assert check.validate("foo:bar", "true", registry=registry) is None
    assert check.validate("foo:bar", "perhaps", registry=registry).kind == "type"


def test_e_21_sphinx_renders_the_definitions():
    text = (ROOT / "doc" / "source" / "reference" / "extra-specs.rst").read_text(encoding="utf-8")
    shown = {name.strip() for name in re.findall(r"^\.\. extra-specs::(.*)$", text, re.MULTILINE)}
    assert shown == REGISTRY.namespaces().keys()
    assert extension("extra_specs").ExtraSpecs.optional_arguments == 1


def test_e_21_every_definition_is_a_target_that_any_page_can_link_to(tmp_path):
    (tmp_path / "conf.py").write_text("extensions = ['extra_specs']\n", encoding="utf-8")
    (tmp_path / "index.rst").write_text("""\
Page
====

:extra-spec:`hw:cpu_policy`, :extra-spec:`one node <hw:numa_cpus.0>`, :image-property:`hw_cpu_policy`,
:extra-spec:`hw:cpu_polic`

.. toctree::

   specs
   images
""", encoding="utf-8")
    (tmp_path / "specs.rst").write_text("Specs\n=====\n\n.. extra-specs:: hw\n", encoding="utf-8")
    (tmp_path / "images.rst").write_text("Images\n======\n\n.. image-properties:: hw_\n", encoding="utf-8")
    warnings = io.StringIO()
    extension("extra_specs")
    app = Sphinx(tmp_path, tmp_path, tmp_path / "out", tmp_path / "trees", "pseudoxml", status=None, warning=warnings)
    app.build()

    def links(page: str) -> set[str]:
        text = (tmp_path / "out" / f"{page}.pseudoxml").read_text(encoding="utf-8")
        return set(re.findall(r"<reference [^>]*>\s*<literal [^>]*>\s*(.*)", text))

    assert links("index") == {"hw:cpu_policy", "one node", "hw_cpu_policy"}
    # The reference links both ways, and to what belongs together.
    assert {"hw_cpu_policy", "hw:numa_nodes"} <= links("specs")
    assert "hw:cpu_policy" in links("images")
    targets = [name for name, _, kind, *_ in app.env.get_domain("std").get_objects() if kind == "extra-spec"]
    assert sorted(targets) == sorted(item.validator.name for item in REGISTRY.namespaces()["hw"])
    assert "hw:cpu_polic" in warnings.getvalue()
    assert "hw:numa_cpus" not in warnings.getvalue()


def test_e_22_definitions_become_metadata_definitions(tmp_path):
    assert command.main(["metadefs", str(tmp_path)]) == 0
    found = json.loads((tmp_path / "flavor-hw.json").read_text(encoding="utf-8"))
    assert found["properties"]["numa_nodes"]["minimum"] == 1


def test_e_23_there_is_one_source():
    names = {validator.name for validator in definitions.extra_specs()}
    assert names == {item.validator.name for item in REGISTRY}
    # The reference, the metadata definitions and the checks take them from there.
    for module in (output, output, check):
        assert "hw:cpu_policy" not in inspect.getsource(module)


def test_e_24_neither_drivers_nor_what_belongs_together_are_enforced():
    assert REGISTRY.get("hw:cpu_realtime").validator.requires
    assert check.check({"hw:cpu_realtime": "true", "vmware:hw_version": "vmx-19"}) == []


def test_e_25_image_properties_are_described_the_same_way():
    properties = installed.image_properties()
    assert check.validate("hw_disk_bus", "virtio", registry=properties) is None
    assert check.validate("hw_disk_bus", "virtoi", registry=properties).nearest == "virtio"
    text = (ROOT / "doc" / "source" / "reference" / "image-properties.rst").read_text(encoding="utf-8")
    shown = {name.strip() for name in re.findall(r"^\.\. image-properties::(.*)$", text, re.MULTILINE)}
    assert shown == {output.prefix_of(item) for item in properties}


def test_e_25_extra_specs_and_image_properties_refer_to_each_other():
    properties = installed.image_properties()
    for one, other in ((REGISTRY, properties), (properties, REGISTRY)):
        for item in one:
            name = item.validator.see_also
            if name:
                found = other.get(name)
                assert found, item.validator.name
                back = one.get(found.validator.see_also)
                # Some names are older ones of the same extra spec.
                assert back is item or item.validator.status != "supported", item.validator.name
                # Enumerations are the same, but an image can say more of Secure Boot, and only require traits.
                ours, theirs = item.validator.value.get("enum"), found.validator.value.get("enum")
                if ours and theirs and "secure_boot" not in name and not name.startswith("trait"):
                    assert set(ours) == set(theirs), name


def test_e_26_a_cpu_map_takes_linear_time():
    hostile = "1" + ",1-1" * 1000 + "!"
    assert check.validate("hw:numa_cpus.0", hostile).kind == "range"
    assert check.validate("hw:numa_cpus.0", hostile[:200] + "!").kind == "pattern"
    # The document's own expression is applied by RE2, in a plug-in.
    assert check.validate("hw:numa_cpu.0", hostile[:200] + "!", registry=only(NUMA_CPU)).kind == "pattern"
