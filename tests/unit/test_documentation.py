"""The examples of the documentation work: its example hook, its configuration file, its references."""

from __future__ import annotations

import configparser
import importlib.util
import re
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

import ironic_rules.cmd  # noqa: F401  (the references import the API, and with it oslo.messaging)
from ironic_rules import rules, samples
from ironic_rules.api.routes import walk_routes
from ironic_rules.api.v1 import RootController
from ironic_rules.conf import opts
from ironic_rules.inspection.hooks import loader
from ironic_rules.inspection.hooks.validate_interfaces import ValidateInterfacesHook
from ironic_rules.inspection.pipeline import Pipeline
from ironic_rules.models.draft import NodeDraft, PortDraft
from ironic_rules.models.task import Task
from tests.unit.doc_extensions import extension
from tests.unit.rules.world import NODE

DOC = Path(__file__).resolve().parents[2] / "doc"
ROOT = DOC.parent
#: Commands that would take this package from an index: by its name alone, also with extras or a version.
_FROM_AN_INDEX = re.compile(
    r"\b(?:pipx? (?:install|download|wheel)|uvx?(?: pip install| tool install| add)?)[^\n`]*"
    r"[ '\"]ironic[-_]rules(?![-_.\w/])", re.IGNORECASE)


def module(path: Path) -> ModuleType:
    """Return the module in a file that is not part of the package."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec and spec.loader
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def inspected(sample: str) -> tuple[Task, dict[str, Any]]:
    """Return a task whose node has the ports of a sample machine, and the sample."""
    body = samples.inventory(sample)
    ports = [PortDraft({"id": number, "uuid": None, "address": interface["mac_address"], "extra": {},
                        "local_link_connection": {}, "pxe_enabled": True, "physical_network": None,
                        "is_smartnic": False, "name": None})
             for number, interface in enumerate(body["inventory"]["interfaces"])]
    return Task(NodeDraft({**NODE, "name": None, "driver_info": {}, "extra": {}, "properties": {}}), ports), body


def route_text(title: str) -> str:
    """Return what the API reference says of a route."""
    title = f"``{title}``"
    _, _, text = extension("api_text").pages().partition(f"\n{title}\n{'-' * len(title)}\n")
    return text.partition("\n---")[0]


def test_the_example_hook_works():
    hook = module(DOC.parent / "tests" / "plugins" / "sample_hooks" / "sample_inspection_hooks.py").RackHook
    classes = {"validate-interfaces": ValidateInterfacesHook, "sample-rack": hook}
    task, body = inspected("dell-r660")

    Pipeline(loader.load(classes, classes=classes)).run(task, body["inventory"])

    assert task.node.extra == {"rack": "192.0.2"}


def test_the_example_configuration_names_only_options_that_exist():
    config = configparser.ConfigParser(default_section="")
    config.read(DOC / "source" / "install" / "ironic-rules.conf", encoding="utf-8")
    known = {(group, option.dest) for group, options in opts.list_opts() for option in options}
    known |= {("DEFAULT", "transport_url"), ("DEFAULT", "log_dir"), ("database", "connection")}

    assert {(group, name) for group in config.sections() for name in config[group]} - known == set()


def test_the_api_reference_has_every_route():
    reference = extension("api_text")

    titles = [line for line in reference.pages().splitlines() if line.startswith("``") and " /" in line]

    assert len(titles) == len(set(titles)) == len(list(walk_routes(RootController())))


def test_the_api_reference_shows_the_fields_of_a_rule_from_its_schema():
    post = route_text("POST /v1/inspection_rules")
    cells = re.findall(r"^   \* - ``(.+)``\n     - (.*)\n     - (.*)\n     - (.*)$", post, re.MULTILINE)

    assert {path: rest for path, *rest in cells if "[" not in path} == {
        "uuid": ["string (a UUID) or ``null``", "", ""],
        "name": ["string (text, one line) or ``null``", "1 to 255 characters", ""],
        "bundle": ["string (text, one line) or ``null``", "1 to 255 characters", ""],
        "description": ["string or ``null``", "at most 255 characters", ""],
        "enabled": ["boolean, ``null`` or string (one of true, yes, on, 1, false, no, off, 0)", "", ""],
        "priority": ["integer or string (the same in digits)", "0 to 9,999", ""],
        "phase": ["one of ``early``, ``preprocess``, ``main``", "", ""],
        "scope": ["string or ``null``", "1 to 255 characters", ""],
        "max_nodes": ["integer, ``null`` or string (the same in at most 9 digits)", "1 to 2,147,483,647", ""],
        "sensitive": ["boolean, ``null`` or string (one of true, yes, on, 1, false, no, off, 0)", "", ""],
        "conditions": ["list or ``null``", "at most 100 items", ""],
        "actions": ["list", "1 to 100 items", "yes"],
    }
    assert [path for path, *_ in cells if "[" in path] == [
        f"{field}[].{name}" for field, shape in rules.rule_schema()["properties"].items() if "items" in shape
        for name in shape["items"]["properties"]]
    assert all(f":ref:`{name} <{name}>`" in post for name in ("operators", "actions"))


def test_the_api_reference_shows_which_fields_of_a_rule_a_patch_writes():
    patch = route_text("PATCH /v1/inspection_rules/{uuid}")

    assert "on :ref:`the fields of a rule <rule-fields>` but ``uuid``\n" in patch


def test_a_table_of_fields_follows_the_schema():
    limits = rules.Limits(conditions=3, actions=4, loop_items=5000)

    shown = {row.path: row.limits for row in extension("json_schema_text").rows(rules.rule_schema(limits))}

    assert (shown["conditions"], shown["actions"]) == ("at most 3 items", "1 to 4 items")
    assert shown["actions[].loop"] == "at most 5,000 items, at most 5,000 members"


def test_the_hook_reference_has_every_hook():
    reference = extension("hook_reference")

    page = reference.page()

    names = [point.name for point in metadata.distribution("ironic-rules").entry_points.select(group=loader.GROUP)]
    assert sorted(reference.hooks()) == sorted(names)
    assert [name for name in names if f"\n{name}\n{'-' * len(name)}\n\n" not in page] == []
    assert [name for name in names if f"   * - `{name}`_" not in page] == []


def test_the_step_reference_has_every_step():
    reference = extension("step_reference")
    offers = reference.offers()

    page = reference.page()

    assert {"deploy.deploy", "bios.apply_configuration", "raid.create_configuration", "power.reboot"} <= set(offers)
    assert [name for name in offers if page.count(f"\n``{name}``\n") != 1] == []
    assert [argument for by in offers.values() for _, info in by.values() for argument in info.argsinfo
            if f"   * ``{argument}``" not in page] == []


def test_nothing_installs_the_package_from_an_index():
    """No index knows the name: an attacker who registers it there would run code where the command is typed."""
    places = [ROOT / name for name in ("README.rst", "CONTRIBUTING.rst", "tox.ini", ".ci/run")]
    for folder in ("doc/source", "etc", "ironic_rules", "releasenotes/notes"):
        places += (path for path in (ROOT / folder).rglob("*")
                   if path.suffix in {".rst", ".yaml", ".py", ".txt", ".conf", ".sample", ".service", ".html", ".js"})

    found = [f"{path.relative_to(ROOT)}:{number}" for path in places
             for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
             if _FROM_AN_INDEX.search(line)]

    assert len(places) > 500 and found == []


def test_an_installation_from_an_index_is_recognized():
    wrong = ("pip install ironic-rules", "$ .venv/bin/pip install -q 'ironic-rules[redfish]'",
             "pip install -U ironic_rules==1.0", "pipx install ironic-rules", "uv pip install ironic-rules")
    right = ("pip install wheels/ironic_rules-*.whl", "pip install './ironic-rules[redfish]'",
             "pip install ironic-rules-dbsync", ".venv/bin/pip install -e '.[redfish]'")

    assert [text for text in (*wrong, *right) if _FROM_AN_INDEX.search(text)] == list(wrong)
