"""Options of single hooks: their effect, and that the service does not start with a malformed one, and names it."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from oslo_config import cfg

from ironic_rules import conf as service_conf
from ironic_rules.exceptions import ConfigurationError
from ironic_rules.inspection import hook_settings
from ironic_rules.inspection.hook_settings import HookSettings
from ironic_rules.inspection.hooks import loader, pci
from ironic_rules.inspection.pipeline import Pipeline
from tests.unit.inspection.tasks import make_task
from tests.walking import walking

#: one that is in the list of this package, and one that is not
T4, CARD = {"vendor_id": "10de", "product_id": "1eb8"}, {"vendor_id": "5555", "product_id": "4444"}


def load(hook: str, **options: object) -> loader.Hooks:
    return loader.load([hook], HookSettings(**options))


def configured(text: str, folder: Path) -> cfg.ConfigOpts:
    """Return a configuration whose section ``[inspector]`` is ``text``."""
    file = folder / "test.conf"
    file.write_text(f"[inspector]\n{text}\n")
    conf = cfg.ConfigOpts()
    service_conf.register_opts(conf)
    conf([], default_config_files=[str(file)])
    return conf


def known(folder: Path, document: object) -> str:
    file = folder / "known.yaml"
    file.write_text(document if isinstance(document, str) else yaml.safe_dump(document))
    return str(file)


@walking("text, reason", [
    ("10de:1eb8", "is not JSON: unexpected"),
    ("{}", "is not an object with exactly vendor_id, product_id and name"),
    ('["10de", "1eb8", "t4"]', "is not an object"),
    ('{"vendor_id": "10de", "product_id": "1eb8"}', "is not an object with exactly"),
    ('{"vendor_id": "10de", "product_id": "1eb8", "name": "t4", "device_type": "type-PF"}', "with exactly"),
    ('{"vendor_id": "10de", "product_id": 1020, "name": "t4"}', "are texts of four hexadecimal digits"),
    ('{"vendor_id": "10de", "product_id": "1eb8a", "name": "t4"}', "are texts of four hexadecimal digits"),
    ('{"vendor_id": "10de", "product_id": "1eb8", "name": ""}', "name is a capability"),
    ('{"vendor_id": "10de", "product_id": "1eb8", "name": "a:b"}', "name is a capability"),
    ('{"vendor_id": "10de", "product_id": "1eb8", "name": "a,b"}', "name is a capability"),
    ('{"vendor_id": "10de", "product_id": "1eb8", "name": ["t4"]}', "name is a capability"),
])
def test_a_malformed_alias_is_refused(text, reason):
    with pytest.raises(ConfigurationError) as caught:
        load("pci-devices", pci_device_alias=('{"vendor_id": "10de", "product_id": "20b5", "name": "a100"}', text))

    assert str(caught.value).startswith(f"[inspector]pci_device_alias: '{text}'")
    assert reason in str(caught.value)


@walking("flag, name", [("", "cpu_vt"), ("vmx", ""), ("vmx", "cpu:vt"), ("vmx", "a,b"), ("vmx", "a b")])
def test_a_malformed_cpu_capability_is_refused(flag, name):
    with pytest.raises(ConfigurationError, match=rf"^\[inspector\]cpu_capabilities: '{flag}:{name}' is not"):
        load("cpu-capabilities", cpu_capabilities={"aes": "cpu_aes", flag: name})


@pytest.mark.parametrize(("document", "reason"), [
    ("pci_devices: [", "cannot be read: line 2"),
    ("", "/pci_devices is not a list"),
    ([{"vendor_id": "10de", "device_id": "1eb8"}], "/pci_devices is not a list"),
    ({"pci_devices": {"vendor_id": "10de"}}, "/pci_devices is not a list"),
    ({"pci_devices": [{"vendor_id": "10de", "device_id": "1eb8"}, "10de:1eb9"]}, "/pci_devices/1 is not an object"),
    ({"pci_devices": [{"vendor_id": "10de"}]}, "/pci_devices/0: vendor_id and device_id are texts"),
    ("pci_devices: [{vendor_id: 1002, device_id: 740f}]", "put quotes around them"),
    ({"pci_devices": [{"vendor_id": "10de", "device_id": "1eb8"}, {"vendor_id": "10DE", "device_id": "0x1EB8"}]},
     "/pci_devices/1: an earlier entry has the same"),
])
def test_a_malformed_list_of_accelerators_is_refused(document, reason, tmp_path):
    path = known(tmp_path, document)

    with pytest.raises(ConfigurationError) as caught:
        load("accelerators", known_accelerators=path)

    assert str(caught.value).startswith(f"[inspector]known_accelerators: {path}")
    assert reason in str(caught.value)


def test_a_missing_list_of_accelerators_is_refused(tmp_path):
    with pytest.raises(ConfigurationError, match=r"known_accelerators: .*nosuch\.yaml cannot be read: .*No such file"):
        load("accelerators", known_accelerators=str(tmp_path / "nosuch.yaml"))


def test_a_list_of_accelerators_replaces_that_of_the_package(tmp_path):
    path = known(tmp_path, {"pci_devices": [
        {"vendor_id": "5555", "device_id": "4444", "type": "NPU", "device_info": "Example Card", "slots": [1]}]})
    task = make_task()

    Pipeline(load("accelerators", known_accelerators=path)).run(
        task, {}, {"pci_devices": [{**T4, "bus": "0000:3b:00.0"}, {**CARD, "bus": "0000:5e:00.0"}]})

    assert task.node.properties["accelerators"] == [
        {"vendor_id": "5555", "device_id": "4444", "type": "NPU", "device_info": "Example Card", "slots": [1],
         "pci_address": "0000:5e:00.0"}]


def test_nodes_do_not_share_what_is_known(tmp_path):
    path = known(tmp_path, {"pci_devices": [{"vendor_id": "5555", "device_id": "4444", "slots": [1]}]})
    pipeline, first, second = Pipeline(load("accelerators", known_accelerators=path)), make_task(), make_task()

    pipeline.run(first, {}, {"pci_devices": [CARD]})
    first.node.properties["accelerators"][0]["slots"].append(2)
    pipeline.run(second, {}, {"pci_devices": [CARD]})

    assert second.node.properties["accelerators"][0]["slots"] == [1]


def test_a_machine_with_impossibly_many_accelerators():
    task = make_task()

    outcome = Pipeline(load("accelerators")).run(task, {}, {"pci_devices": [T4] * 20_000})

    assert len(task.node.properties["accelerators"]) == pci.MAX_ACCELERATORS
    assert outcome.messages == [("warning", "only 512 of 20000 accelerators are stored")]


def test_the_packages_list_has_what_ironic_knows():
    task = make_task()

    Pipeline(load("accelerators")).run(task, {}, {"pci_devices": [T4, {"vendor_id": "10de", "product_id": "1df6"}]})

    assert [found["type"] for found in task.node.properties["accelerators"]] == ["GPU", "GPU"]


def test_a_great_many_malformed_entries_make_one_short_warning():
    data = [["a", "b", "c"]] * 10_000 + [["a", "b", str(number), number] for number in range(10_000)]

    outcome = Pipeline(load("extra-hardware")).run(make_task(), {}, {"data": data})

    assert len(outcome.plugin_data["extra"]["a"]["b"]) == 10_000
    (_, text), = outcome.messages
    assert text.endswith("/data/7 and 9992 more")


def test_the_hooks_of_a_file_surround_the_default_ones(tmp_path):
    conf = configured("hooks = extra-hardware,$default_hooks,memory,boot-mode", tmp_path)

    hooks = loader.load(loader.parse(conf.inspector.hooks), hook_settings.from_conf(conf))

    assert [name for name, _ in hooks] == [
        "extra-hardware", "ramdisk-error", "validate-interfaces", "ports", "architecture", "memory", "boot-mode"]


def test_other_default_hooks(tmp_path):
    conf = configured("default_hooks = memory, validate_interfaces\nhooks = $default_hooks,ports", tmp_path)

    assert [name for name, _ in loader.load(loader.parse(conf.inspector.hooks))] == [
        "memory", "validate-interfaces", "ports"]


@pytest.mark.parametrize(("text", "expected"), [
    ("", 1), ("disk_partitioning_spacing = 0", 0), ("disk_partitioning_spacing = 5", 5),
    ("disk_partitioning_spacing = True", 1), ("disk_partitioning_spacing = false", 0)])
def test_the_spacing_is_whole_gib(text, expected, tmp_path):
    assert hook_settings.from_conf(configured(text, tmp_path)).disk_partitioning_spacing == expected


@pytest.mark.parametrize("value", ["-1", "1.5", "much", "1025"])
def test_a_malformed_spacing_is_refused(value, tmp_path):
    conf = configured(f"disk_partitioning_spacing = {value}", tmp_path)

    with pytest.raises(cfg.ConfigFileValueError, match="disk_partitioning_spacing"):
        hook_settings.from_conf(conf)


@pytest.mark.parametrize("value", ["foo", "ftp://192.0.2.1", "http://", "192.0.2.1:6385", "/v1"])
def test_a_callback_endpoint_that_is_no_url_stops_the_start(value, tmp_path):
    conf = configured(f"callback_endpoint_override = {value}", tmp_path)

    with pytest.raises(cfg.ConfigFileValueError, match=r"callback_endpoint_override .*an http or https URL"):
        hook_settings.from_conf(conf)


def test_a_callback_endpoint_may_be_a_url(tmp_path):
    conf = configured("callback_endpoint_override = https://[2001:db8::1]:6385", tmp_path)

    hook_settings.from_conf(conf)
    assert conf.inspector.callback_endpoint_override == "https://[2001:db8::1]:6385"


@pytest.mark.parametrize(("option", "values"), [
    ("add_ports", ["all", "active", "pxe", "disabled"]), ("keep_ports", ["all", "present", "added"])])
def test_every_choice_of_ports_has_a_vector(option, values, tmp_path):
    vectors = yaml.safe_load(
        (Path(__file__).parents[2] / "vectors" / "hooks" / "ports.yaml").read_text(encoding="utf-8"))
    defaults = {"add_ports": "all", "keep_ports": "all"}

    assert getattr(hook_settings.from_conf(configured("", tmp_path)), option) == defaults[option]
    for value in values:
        assert getattr(hook_settings.from_conf(configured(f"{option} = {value}", tmp_path)), option) == value
    assert set(values) == {{**defaults, **case.get("settings", {})}[option] for case in vectors}


@pytest.mark.parametrize("option", ["add_ports", "keep_ports"])
def test_an_unknown_choice_of_ports_is_refused(option, tmp_path):
    with pytest.raises(cfg.ConfigFileValueError, match=option):
        hook_settings.from_conf(configured(f"{option} = some", tmp_path))
