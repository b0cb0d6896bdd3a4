"""``ironic-rules-extra-specs``: what it reads, what it prints, and its exit status."""

from __future__ import annotations

import io
import json
import sys
import textwrap
from pathlib import Path
from types import SimpleNamespace

import jsonschema
import pytest

from ironic_rules.cmd import extra_specs
from ironic_rules.extra_specs import flavor_files, installed
from tests.unit.doc_extensions import extension

ROOT = Path(__file__).resolve().parents[3]
SHOWN = {"name": "gold", "ram": 1024, "vcpus": 2, "disk": 10}
LISTED = {"Name": "gold", "RAM": 1024, "VCPUs": 2, "Disk": 10}
BAD = {"hw:cpu_pollllicy": "dedicated"}
TEXT = "hw:cpu_pollllicy='dedicated', hw:numa_nodes='2'"

#: The rules of the image service for a namespace, as far as they matter for files.
CATALOG = {
    "type": "object",
    "required": ["namespace"],
    "additionalProperties": False,
    "properties": {
        "namespace": {"type": "string", "maxLength": 80},
        "display_name": {"type": "string", "maxLength": 80},
        "description": {"type": "string", "maxLength": 500},
        "visibility": {"enum": ["public", "private"]},
        "protected": {"type": "boolean"},
        "objects": {"type": "array"},
        "resource_type_associations": {"type": "array", "minItems": 1, "items": {
            "type": "object", "required": ["name"],
            "properties": {key: {"type": "string"} for key in ("name", "prefix", "properties_target")}}},
        "properties": {"type": "object", "minProperties": 1, "propertyNames": {"maxLength": 80},
                       "additionalProperties": {
            "type": "object",
            "required": ["title", "type"],
            "additionalProperties": False,
            "properties": {
                "title": {"type": "string"}, "description": {"type": "string"},
                "type": {"enum": ["array", "boolean", "integer", "number", "object", "string"]},
                "minimum": {"type": "number"}, "maximum": {"type": "number"},
                "pattern": {"type": "string", "format": "regex"}, "enum": {"type": "array", "minItems": 1}}}},
    },
}


def run(*argv: str) -> int:
    return extra_specs.main(argv)


@pytest.fixture
def file(tmp_path):
    """Write a file and return its name."""
    def write(content: object) -> str:
        path = tmp_path / "flavors"
        path.write_text(content if isinstance(content, str) else json.dumps(content, indent=1), encoding="utf-8")
        return str(path)

    return write


def test_arguments_are_checked(capsys):
    assert run("check", "hw:cpu_policy=dedicated", "trait:CUSTOM_RAID=required") == 0
    assert capsys.readouterr().out == ""
    assert run("check", "hw:cpu_policy=deddddicated", "capabilities:x=s== a") == 1
    assert "Did you mean 'dedicated'?" in capsys.readouterr().out


@pytest.mark.parametrize(("content", "flavor"), [
    ("# a comment\nhw:cpu_pollllicy = dedicated\n\nhw:numa_nodes=2\n", ""),
    (BAD, ""),
    ({**SHOWN, "properties": BAD}, "gold"),
    ({**SHOWN, "properties": TEXT}, "gold"),
    ([{**LISTED, "Properties": BAD}], "gold"),
    ([{**LISTED, "Properties": {}}, {**LISTED, "Name": "silver", "Properties": TEXT}], "silver"),
    ({"flavors": [{"id": "1", "name": "gold", "extra_specs": BAD}]}, "gold"),
    ({"flavor": {"name": "gold", "extra_specs": BAD}}, "gold"),
    ({"extra_specs": BAD}, ""),
    (textwrap.dedent("""\
        - hosts: localhost
          tasks:
            - openstack.cloud.compute_flavor:
                name: gold
                ram: "{{ ram }}"
                extra_specs:
                  hw:boot_menu: true
                  hw:numa_nodes: 2
                  hw:cpu_policy: "{{ policy }}"
                  hw:cpu_pollllicy: dedicated
        """), "gold"),
    (textwrap.dedent("""\
        heat_template_version: 2021-04-16
        resources:
          gold:
            type: OS::Nova::Flavor
            properties:
              name: gold
              ram: 1024
              extra_specs: {"hw:cpu_policy": !secret policy, "hw:cpu_pollllicy": dedicated}
        """), "gold"),
])
def test_files_of_clients_and_tools_are_read(file, capsys, content, flavor):
    assert run("check", "--format", "json", file(content)) == 1

    found = json.loads(capsys.readouterr().out)
    keys = [(problem["key"], problem["kind"]) for problem in found["problems"] if problem["kind"] == "unknown"]
    assert keys == [("hw:cpu_pollllicy", "unknown")]
    assert [problem["flavor"] for problem in found["problems"] if problem["kind"] == "unknown"] == [flavor or None]


@pytest.mark.parametrize("content", [[], {"flavors": []}, [{**LISTED, "Properties": ""}], {"extra_specs": {}}])
def test_flavors_without_extra_specs_are_clean(file, capsys, content):
    assert run("check", file(content)) == 0
    assert capsys.readouterr().out == ""


def test_a_value_that_is_filled_in_later_is_not_checked():
    flavor, = flavor_files.read("extra_specs: {'hw:cpu_policy': '{{ policy }}', 'hw:numa_nodes': '2'}")
    assert [(entry.key, entry.is_templated) for entry in flavor.entries] == [
        ("hw:cpu_policy", True), ("hw:numa_nodes", False)]


def test_annotations_of_github_have_the_line(file, capsys):
    name = file("flavors:\n- name: a\n  extra_specs:\n    hw:cpu_policy: shared\n    hw:numa_nodes: 0\n")

    assert run("check", "--format", "github", name) == 1
    assert capsys.readouterr().out == (
        f"::error file={name},line=5::The value of 'hw:numa_nodes' is '0', which is out of range: it must be "
        "at least 1.\n")


def test_permissive_mode_warns_of_unknown_keys(file, capsys):
    assert run("check", "--mode", "permissive", file(BAD)) == 0
    assert "warning: There is no extra spec 'hw:cpu_pollllicy'" in capsys.readouterr().out
    assert run("check", "--mode", "permissive", "hw:cpu_policy=x") == 1


def test_the_standard_input_is_read(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.StringIO("hw:cpu_policy=x\n"))
    assert run("check") == 1
    assert capsys.readouterr().out.startswith("standard input:1: The value of 'hw:cpu_policy' is 'x'")


def test_properties_of_images_are_checked(capsys):
    assert run("check", "--images", "hw_disk_bus=virtio", "hw_cpu_policy=dedicated", "trait:CUSTOM_A=required") == 0
    assert run("check", "--images", "hw_disk_buss=virtio") == 1
    assert "There is no image property 'hw_disk_buss'. Did you mean 'hw_disk_bus'?" in capsys.readouterr().out
    assert run("check", "--images", "architecture=x86_64") == 0
    assert "Use 'hw_architecture' instead." in capsys.readouterr().out


IMAGE = {"id": "1", "name": "img", "status": "active", "tags": [], "min_ram": 0, "os_hidden": False, "locations": [],
         "os_glance_failed_import": "", "hw_disk_bus": "virtio"}
BAD_IMAGE = {"hw_vif_model": "virtioo", "os_hash_algo": "sha512"}


@pytest.mark.parametrize(("content", "name", "pointer"), [
    ({"name": "img", "properties": BAD_IMAGE}, "img", "/properties"),
    ([{"Name": "img", "Properties": BAD_IMAGE}], "img", "/0/Properties"),
    ([{"Name": "img", "Properties": "hw_vif_model='virtioo', os_hidden='False'"}], "img", "/0/Properties"),
    ({**IMAGE, **BAD_IMAGE}, "img", ""),
    ({"name": "img", "tags": [], **BAD_IMAGE}, "img", ""),
    ({"images": [IMAGE, {**IMAGE, "name": "other", **BAD_IMAGE}]}, "other", "/images/1"),
    ("- openstack.cloud.image:\n    name: img\n    properties: {hw_vif_model: virtioo}\n  tags: [images]\n", "img",
     "/0/openstack.cloud.image/properties"),
    (BAD_IMAGE, None, ""),
    ("hw_vif_model=virtioo\n", None, ""),
])
def test_images_as_clients_and_the_image_service_have_them_are_read(file, capsys, content, name, pointer):
    assert run("check", "--images", "--format", "json", file(content)) == 1

    problem, = json.loads(capsys.readouterr().out)["problems"]
    assert (problem["image"], problem["pointer"], problem["nearest"]) == (name, f"{pointer}/hw_vif_model", "virtio")


@pytest.mark.parametrize(("content", "status"), [
    ([], 0), ({"images": []}, 0), ({"name": "img", "properties": {}}, 0), (IMAGE, 0), ({"flavors": []}, 2),
    ({"extra_specs": BAD}, 2), ([{"ID": "1", "Name": "img", "Status": "active"}], 2), ({"a": {"b": 1}}, 2),
    ({"resources": {"a": {"type": "OS::Nova::Server", "properties": {"flavor": "gold"}}}}, 2)])
def test_images_without_properties_are_clean_and_other_things_are_no_images(file, capsys, content, status):
    assert run("check", "--images", file(content)) == status
    assert ("no properties of images" in capsys.readouterr().err) == (status == 2)


#: Each with the lines of the values that are refused, and those of the keys that are there before.
@pytest.mark.parametrize(("content", "lines", "again"), [
    ("hw:cpu_policy=ded\n\nhw:cpu_policy=dedicated\n", [1], [3]),
    ("extra_specs:\n  hw:cpu_policy: ded # hw:cpu_policy: x\n  hw:cpu_policy: dedicated\n  hw:cpu_policy: x\n",
     [2, 4], [3, 4]),
    ("extra_specs: !x\n  hw:cpu_policy: shared\n  hw:cpu_policy: x\n", [3], [3]),
    ('{"extra_specs": {\n "xhw:cpu_policy": "1",\n "hw:cpu_policy": "ded",\n "hw:cpu_policy": "shared"}}', [2, 3], [4]),
    ('{"ram": 1, "vcpus": 1,\n "properties": "hw:cpu_policy=\'ded\', hw:cpu_policy=\'shared\'"}', [2], [2]),
])
def test_keys_that_are_given_again_are_problems_with_their_own_lines(file, capsys, content, lines, again):
    assert run("check", "--format", "json", file(content)) == 1

    found = json.loads(capsys.readouterr().out)["problems"]
    assert [problem["line"] for problem in found if problem["kind"] != "duplicate"] == lines
    assert [problem["line"] for problem in found if problem["kind"] == "duplicate"] == again


def test_the_lines_of_thousands_of_keys_are_found_in_one_pass(file, capsys):
    keys = [f"trait:CUSTOM_{number}" for number in range(5000)]
    run("check", "--format", "json", file(json.dumps({"extra_specs": dict.fromkeys(keys, "no")}, indent=0)))

    found = json.loads(capsys.readouterr().out)["problems"]
    assert [problem["line"] for problem in found] == list(range(3, 5003))


def test_arguments_that_are_given_again_are_problems(capsys):
    assert run("check", "hw:cpu_policy=ded", "hw:cpu_policy=dedicated") == 1
    told = capsys.readouterr().out
    assert "'ded', which is not one of" in told
    assert "'hw:cpu_policy' is given again" in told


def test_what_is_merged_into_a_mapping_gives_way_to_it(file, capsys):
    content = ("base: &base {'hw:cpu_policy': shared, 'hw:numa_nodes': 0}\n"
               "extra_specs:\n  <<: *base\n  hw:cpu_policy: dedicated\n")
    assert run("check", file(content)) == 1
    problem, = capsys.readouterr().out.splitlines()
    assert "'hw:numa_nodes'" in problem


@pytest.mark.parametrize("content", [
    f"extra_specs: {{'hw:numa_nodes': 0x{'F' * 5000}}}", f"extra_specs: {{'hw:numa_nodes': {'1' * 5000}}}",
    f'{{"extra_specs": {{"hw:numa_nodes": {"1" * 5000}}}}}',
    f"? 0x{'F' * 5000}\n: extra_specs: {{'hw:numa_nodes': 0}}\n"])
def test_numbers_of_any_length_are_out_of_range(file, capsys, content):
    assert run("check", "--format", "json", file(content)) == 1
    problem, = json.loads(capsys.readouterr().out)["problems"]
    assert (problem["key"], problem["kind"]) == ("hw:numa_nodes", "range")


def test_an_argument_that_is_too_long_for_a_file_is_checked(capsys):
    assert run("check", f"hw:cpu_policy={'x' * 300}") == 1
    assert "has 300 characters" in capsys.readouterr().out


@pytest.mark.parametrize("form", ["text", "github"])
def test_what_a_file_has_begins_no_line_of_the_output(file, capsys, form):
    name = file("name: \"x\\n::error file=a::pwned\\e[2J\"\nextra_specs: {\"a\\n::error::b\": 1}\n")
    assert run("check", "--format", form, name) == 1
    assert run("check", file("ram: 1\nvcpus: 1\nproperties: \"\\n::error::x\"\n")) == 2
    told = capsys.readouterr()
    for output in (told.out, told.err):
        assert "\x1b" not in output
        assert [line for line in output.splitlines() if "error" in line] == output.splitlines()
        assert len(output.splitlines()) == 1


#: Each line doubles what it stands for.
BOMB = "a0: &a0 [x, x]\n" + "".join(f"a{n + 1}: &a{n + 1} [*a{n}, *a{n}]\n" for n in range(24))


@pytest.mark.parametrize(("content", "text"), [
    ("", "no extra specs"), ("{}", "no extra specs"), ("just words", "no extra specs"), ("{", "neither JSON nor YAML"),
    ("[" * 5000, "neither JSON nor YAML"), ({**SHOWN, "properties": "a='1', nonsense"}, "not as a client prints"),
    *((f"extra_specs: {{a: {value}}}", "neither JSON nor YAML") for value in (
        "!!bool x", "!!timestamp x", "!!int ''", "!!float '1" + ":1" * 500 + ".0'")),
    (BOMB, "no extra specs"), ({"a": {"b": 1}}, "no extra specs"),
])
def test_what_cannot_be_read_is_a_usage_error(file, capsys, content, text):
    assert run("check", file(content)) == 2
    assert text in capsys.readouterr().err


def test_a_missing_file_and_text_of_another_encoding_are_usage_errors(tmp_path, capsys):
    assert run("check", str(tmp_path / "gone")) == 2
    (tmp_path / "latin").write_bytes(b"a=\xe4")
    assert run("check", str(tmp_path / "latin")) == 2
    with pytest.raises(SystemExit) as exited:
        run("check", "--mode", "off")
    assert exited.value.code == 2
    told = capsys.readouterr().err
    assert "gone" in told
    assert f"{tmp_path / 'latin'}: 'utf-8' codec" in told


def test_list_and_show(capsys):
    assert run("list", "--namespace", "hw", "--type", "bool", "--text", "MEMORY", "--format", "json") == 0
    assert [item["name"] for item in json.loads(capsys.readouterr().out)] == ["hw:locked_memory", "hw:mem_encryption"]
    assert run("list", "--status", "removed") == 0
    assert "powervm:{name}" in capsys.readouterr().out
    assert run("show", "hw:numa_cpus.3") == 0
    assert "``hw:numa_cpus.{num}``" in capsys.readouterr().out
    assert run("show", "hw:numa_cpus.{num}", "--format", "json") == 0
    assert json.loads(capsys.readouterr().out)["value"]["format"] == "cpu-map"
    assert run("show", "hw:cpu_pollicy") == 1
    assert "Did you mean 'hw:cpu_policy'?" in capsys.readouterr().err


def test_metadata_definitions_are_those_of_the_image_service(tmp_path, capsys):
    assert run("metadefs", str(tmp_path / "metadefs")) == 0

    files = sorted((tmp_path / "metadefs").iterdir())
    assert [str(file) for file in files] == sorted(capsys.readouterr().out.split())
    found = {file.name: json.loads(file.read_text(encoding="utf-8")) for file in files}
    for namespace in found.values():
        jsonschema.Draft202012Validator(CATALOG, format_checker=jsonschema.FormatChecker()).validate(namespace)
    assert len({namespace["namespace"] for namespace in found.values()}) == len(found)
    hardware = found["flavor-hw.json"]
    assert hardware["resource_type_associations"] == [{"name": "OS::Nova::Flavor", "prefix": "hw:"}]
    assert hardware["properties"]["cpu_policy"]["enum"] == ["dedicated", "shared", "mixed"]
    assert hardware["properties"]["redirected_usb_ports"]["maximum"] == 15
    assert "HW_CPU_X86_AVX" in found["flavor-trait.json"]["properties"]
    assert found["image-hw.json"]["properties"]["disk_bus"]["type"] == "string"
    assert not any("monitors" in namespace["properties"] for namespace in found.values())


def test_the_build_of_the_documentation_has_the_metadata_definitions(tmp_path):
    app = SimpleNamespace(outdir=str(tmp_path), builder=SimpleNamespace(format="html"))
    extension("extra_specs").write_metadefs(app, None)

    files = sorted((tmp_path / "metadefs").iterdir())
    assert len(files) > 15
    for file in files:
        jsonschema.validate(json.loads(file.read_text(encoding="utf-8")), CATALOG)


def test_every_name_without_parameters_is_in_the_metadata_definitions():
    from ironic_rules.extra_specs import output
    registry = installed.built_in()
    found = output.namespaces(registry, installed.image_properties()).values()
    keys = {f"{namespace['resource_type_associations'][0].get('prefix', '')}{name}"
            for namespace in found for name in namespace["properties"]}
    assert {item.validator.name for item in registry if not item.template.parameters and not item.is_removed} <= keys


def test_the_reference_is_valid_for_one_namespace_and_for_all(capsys):
    assert run("rst", "os") == 0
    assert "``os:secure_boot``" in capsys.readouterr().out
    assert run("rst", "--images") == 0
    assert "``hw_disk_bus``" in capsys.readouterr().out
