"""R-78 to R-89: options, plug-ins, and the environment of the rules."""

from __future__ import annotations

import contextlib
import importlib.metadata
import sqlite3
from pathlib import Path
from typing import Any

import httpx
import pytest

from ironic_rules import rules
from ironic_rules import service as composition
from ironic_rules.api import versions
from ironic_rules.db import migration
from ironic_rules.exceptions import ConfigurationError
from ironic_rules.hardware.base import InspectInterface
from ironic_rules.inspection import rule_sets
from ironic_rules.models.inventories import InspectionData
from ironic_rules.rules import InspectionRuleActionBase
from ironic_rules.rules.signatures import Registry
from tests.functional.clients import machines
from tests.functional.clients.test_ipa import agent
from tests.functional.faulty import FaultyHardware
from tests.functional.processes import standalone
from tests.functional.rows import drivers, identity, packages
from tests.functional.rows.conftest import LOG, RULES, create, inspected, patch, refusal, stored
from tests.functional.whole import Whole, configuration, fault, running

UUID = "11111111-1111-4111-8111-111111111111"
MARK = {"op": "set-attribute", "args": ["/extra/ran", True]}
#: Inspect interfaces of nodes, with the defaults of the service.
IN_BAND = "^(agent|inspector)$"


class OutOfBand(InspectInterface):
    """Inspects immediately, with data that it has read itself, and without a ramdisk."""

    def inspect_hardware(self, task: Any) -> InspectionData:
        return InspectionData({"hostname": "from the BMC", "cpu": {"architecture": "aarch64"}})

    def abort(self, task: Any) -> None:
        pass


class RemoteHardware(FaultyHardware):
    supported_inspect_interfaces = ("out-of-band",)


def with_out_of_band(folder: Path, text: str) -> contextlib.AbstractContextManager[Whole]:
    """Run a service that can also inspect without a ramdisk."""
    return drivers.running(folder, text, {"remote": RemoteHardware}, {"out-of-band": OutOfBand})


@pytest.mark.parametrize(("interfaces", "ran"), [(IN_BAND, {}), (".*", {"ran": "from the BMC"})])
def test_r_78_rules_run_for_out_of_band_inspection_if_the_operator_wants_it(tmp_path, interfaces, ran):
    with with_out_of_band(tmp_path, f"supported_interfaces = {interfaces}\n") as whole:
        create(whole, {"op": "set-attribute", "args": ["/extra/ran", "{inventory[hostname]}"]})
        create(whole, {"op": "set-plugin-data", "args": ["seen", True]})
        uuid = whole.enroll("manageable", driver="remote")

        node = whole.provision(uuid, "inspect")

        assert (node["provision_state"], node["inspect_interface"]) == ("manageable", "out-of-band")
        assert (node["extra"], node["properties"]["cpu_arch"]) == (ran, "aarch64")
        assert ("seen" in stored(whole, uuid)["plugin_data"]) is bool(ran)


def test_r_78_a_rule_that_fails_ends_out_of_band_inspection_too(tmp_path):
    with with_out_of_band(tmp_path, "supported_interfaces = .*\n") as whole:
        create(whole, MARK, {"op": "fail", "args": ["{inventory[hostname]} is not ours"]})
        uuid = whole.enroll("manageable", driver="remote")

        node = whole.provision(uuid, "inspect")

        assert (node["provision_state"], node["extra"]) == ("inspect failed", {})
        assert "from the BMC is not ours" in node["last_error"]


def test_r_79_only_administrators_change_rules_and_strangers_do_not_see_them(tmp_path):
    with identity.configuration() as keystone, standalone(tmp_path, config=keystone) as (_, endpoint):
        def status(token: str, method: str, path: str, body: Any = None) -> int:
            headers = {versions.HEADER: versions.MAX_STRING, **({"X-Auth-Token": token} if token else {})}
            return httpx.request(method, f"{endpoint}{RULES}{path}", json=body, headers=headers).status_code

        assert status("admin", "POST", "", {"uuid": UUID, "actions": [LOG]}) == 201

        def statuses(token: str) -> list[int]:
            return [
                status(token, "GET", ""), status(token, "GET", "?detail=true"), status(token, "GET", f"/{UUID}"),
                status(token, "POST", "", {"actions": [LOG]}),
                status(token, "PATCH", f"/{UUID}", [{"op": "add", "path": "/priority", "value": 1}]),
                status(token, "DELETE", f"/{UUID}"), status(token, "DELETE", "")]

        assert statuses("") == statuses("forged") == [401] * 7
        assert statuses("member") == [403] * 7
        assert statuses("reader") == [200, 200, 200, 403, 403, 403, 403]
        assert statuses("admin") == [200, 200, 200, 201, 200, 204, 204]


@pytest.mark.parametrize("name", ["built_in", "built_in_rules"])
def test_r_80_the_option_built_in_names_a_file_with_rules_that_run(tmp_path, name):
    file = tmp_path / "rules.yaml"
    file.write_text("- {priority: -7, actions: [{op: set-attribute, args: [/extra/ran, true]}]}\n")
    with running(tmp_path, f"{name} = {file}\n") as whole:
        rule, = whole.app.get(f"{RULES}?detail=true").json["inspection_rules"]
        assert (rule["built_in"], rule["priority"], rule["actions"]) == (True, -7, [MARK])
        assert inspected(whole)["extra"] == {"ran": True}


def test_r_80_the_option_built_in_is_optional_and_a_file_that_is_not_there_an_error(tmp_path):
    assert rule_sets.prepare_rules(configuration(tmp_path)).built_in == ()
    with pytest.raises(ConfigurationError, match="nowhere"):
        rule_sets.prepare_rules(configuration(tmp_path, f"built_in = {tmp_path}/nowhere.yaml\n"))


def test_r_81_default_scope_is_the_scope_of_rules_that_set_none(tmp_path):
    file = tmp_path / "rules.yaml"
    file.write_text("- actions: [{op: set-attribute, args: [/extra/built_in, true]}]\n")
    with running(tmp_path, f"default_scope = lab\nbuilt_in = {file}\n") as whole:
        def mark(name: str) -> dict[str, Any]:
            return {"op": "set-attribute", "args": [f"/extra/{name}", True]}

        made = [create(whole, mark("unset")), create(whole, mark("other"), scope="other"),
                create(whole, mark("everywhere"), scope=None)]

        assert [rule["scope"] for rule in made] == ["lab", "other", None]
        assert [rule["scope"] for rule in whole.app.get(RULES).json["inspection_rules"] if rule["built_in"]] == [None]
        assert set(inspected(whole)["extra"]) == {"everywhere", "built_in"}
        assert set(inspected(whole, inspection_scope="lab")["extra"]) == {"unset", "everywhere", "built_in"}
        assert set(inspected(whole, inspection_scope="other")["extra"]) == {"other", "everywhere", "built_in"}


@pytest.mark.parametrize(("mode", "plain", "sensitive"), [
    ("", False, False), ("always", False, False), ("never", True, True), ("sensitive", False, True)])
def test_r_82_mask_secrets_says_which_rules_read_the_secrets_of_a_node(tmp_path, mode, plain, sensitive):
    with running(tmp_path, f"mask_secrets = {mode}\n" if mode else "") as whole:
        for name, secret in (("plain", False), ("sealed", True)):
            create(whole, {"op": "set-attribute", "args": [f"/extra/{name}", [
                "{node.driver_info[ipmi_password]}", "{node[driver_info][ipmi_password]}", "is {node.driver_info}",
                "user {node.driver_info[ipmi_username]}"]]}, sensitive=secret)
            create(whole, {"op": "set-attribute", "args": [f"/extra/guessed_{name}", True]}, sensitive=secret,
                   conditions=[{"op": "eq", "args": ["{node.driver_info[ipmi_password]}", "s3cret"]}])

        node = inspected(whole, driver_info={"ipmi_username": "root", "ipmi_password": "s3cret"})

        extra = whole.row(node["uuid"]).extra
        for name, reads in (("plain", plain), ("sealed", sensitive)):
            word = "s3cret" if reads else "******"
            whole_text = f"is {{'ipmi_username': 'root', 'ipmi_password': '{word}'}}"
            assert extra[name] == [word, word, whole_text, "user root"]
            assert (f"guessed_{name}" in extra) is reads
        # Written values are not masked, and stored values are unchanged.
        assert whole.row(node["uuid"]).driver_info == {"ipmi_username": "root", "ipmi_password": "s3cret"}


def test_r_82_a_mode_that_does_not_exist_stops_the_start(tmp_path):
    with pytest.raises(ConfigurationError, match="mask_secrets"):
        rule_sets.prepare_rules(configuration(tmp_path, "mask_secrets = sometimes\n"))


def test_r_83_rules_run_in_band_only_unless_the_operator_says_otherwise():
    assert composition.prepare_config([], config_files=[]).inspection_rules.supported_interfaces == IN_BAND


@pytest.mark.parametrize(("interfaces", "driver", "ran"), [
    (IN_BAND, "fake-hardware", True), (IN_BAND, "faulty-hardware", False), (".*", "faulty-hardware", True),
    (".*", "fake-hardware", True), ("faulty", "fake-hardware", False), ("agen", "fake-hardware", False),
    ("x|agent", "fake-hardware", True)])
def test_r_83_supported_interfaces_must_match_the_whole_inspect_interface(tmp_path, interfaces, driver, ran):
    with running(tmp_path, f"supported_interfaces = {interfaces}\n") as whole:
        create(whole, MARK)
        node = whole.inspect(whole.enroll("manageable", driver=driver), whole.machine()[1])

        assert node["provision_state"] == "manageable"
        assert node["extra"] == ({"ran": True} if ran else {})
        assert node["properties"]["cpu_arch"] == "x86_64"  # hooks run anyway


def test_r_83_an_expression_that_is_none_stops_the_start(tmp_path):
    with pytest.raises(ConfigurationError, match="supported_interfaces"), running(
            tmp_path, "supported_interfaces = (\n"):
        pass


def discovered(whole: Whole, body: dict[str, Any]) -> dict[str, Any]:
    """Let a machine that is not enrolled send its data; return its node when it is in a stable state."""
    reply = whole.app.post_json("/v1/continue_inspection", body)
    assert reply.status_int == 200, reply.text
    uuid = reply.json["node"]["uuid"]
    whole.at_rest(uuid)
    return whole.show(uuid)


@pytest.mark.parametrize(("option", "scope", "extra"), [
    ("inspection_scope = fresh\n", "fresh", {"fresh": True, "all": True}), ("", None, {"all": True})])
def test_r_84_discovered_nodes_get_the_scope_of_the_option_and_the_rules_for_it(tmp_path, option, scope, extra):
    with running(tmp_path, f"\n[auto_discovery]\nenabled = true\ndriver = fake-hardware\n{option}") as whole:
        for name, of in (("fresh", "fresh"), ("other", "other"), ("all", None)):
            create(whole, {"op": "set-attribute", "args": [f"/extra/{name}", True]}, scope=of)

        node = discovered(whole, whole.machine()[1])

        assert (node["auto_discovered"], node["inspection_scope"]) == (True, scope)
        assert (node["extra"], node["last_error"]) == (extra, None)
        assert inspected(whole)["inspection_scope"] is None  # it is not for nodes that were enrolled by a user


class Tag(InspectionRuleActionBase):
    """Written after the interface in document 000."""

    formatted_params = ["name"]
    supports_early = True

    def call_early(self, rule, *args, **kwargs):
        rule.plugin_data["early"] = [rule.uuid, rule.phase, list(args), kwargs]

    def __call__(self, task, rule, name, note="none", *, count: int = 1):
        task.node.extra["tag"] = [rule.uuid, rule.description, name, note, count]
        task.node.save()


class Whatever(InspectionRuleActionBase):
    """Accepts any argument; only for nodes."""

    def __call__(self, task, rule, *args, **kwargs):
        task.node.extra["whatever"] = [list(args), kwargs]


@pytest.fixture
def with_plugins(whole: Whole, monkeypatch: pytest.MonkeyPatch) -> Whole:
    """The service with two more actions."""
    registry = Registry("action", rules.ACTIONS._read)
    for plugin in rules.ACTIONS:
        registry.add(plugin.name, type(plugin.call))
    registry.add("row-tag", Tag)
    registry.add("row-whatever", Whatever)
    monkeypatch.setattr("ironic_rules.rules.compiler.ACTIONS", registry)
    return whole


def test_r_85_an_action_gets_task_rule_and_its_arguments_filled_in_where_it_wants(with_plugins):
    whole = with_plugins
    rule = create(whole, {"op": "row-tag", "args": ["{inventory[hostname]}", "{as it is"]}, description="tags")

    node = inspected(whole, {"hostname": "web"})

    assert node["last_error"] is None
    assert node["extra"] == {"tag": [rule["uuid"], "tags", "web", "{as it is", 1]}


def test_r_85_an_action_that_supports_early_is_called_without_a_task(with_plugins):
    whole = with_plugins
    rule = create(whole, {"op": "row-tag", "args": {"name": "{inventory[hostname]}", "count": 3}}, phase="early")

    node = inspected(whole, {"hostname": "web"})

    uuid, phase, args, kwargs = stored(whole, node["uuid"])["plugin_data"]["early"]
    assert (uuid, phase) == (rule["uuid"], "early")
    assert (args, kwargs) == ([], {"name": "web", "count": 3}) or (args, kwargs) == (["web"], {"count": 3})
    assert node["extra"] == {}


def test_r_85_an_action_that_does_not_support_early_is_refused_there(with_plugins):
    action = {"op": "row-whatever", "args": [1, "{two}"]}
    assert "/actions/0/op: " in refusal(with_plugins, action, phase="early")
    create(with_plugins, action, {"op": "row-whatever", "args": [1, "{two}"]})
    assert inspected(with_plugins)["extra"] == {"whatever": [[1, "{two}"], {}]}


@pytest.mark.parametrize(("args", "place"), [
    ([], "/actions/0/args: missing: name"), ({"note": "a"}, "/actions/0/args: missing: name"),
    ({"nmae": "a"}, "/actions/0/args/nmae: "), ({"name": "a", "task": 1}, "/actions/0/args/task: "),
    ({"name": "a", "rule": 1}, "/actions/0/args/rule: "), (["a", "b", 1], "/actions/0/args/2: "),
    ({"name": "a", "count": "many"}, "/actions/0/args/count: "),
    ("a", "/actions/0/args: ")])
def test_r_86_what_the_signature_does_not_take_is_refused_with_its_place(with_plugins, args, place):
    reply = with_plugins.app.post_json(RULES, {"actions": [{"op": "row-tag", "args": args}]})

    assert (reply.status_int, place in fault(reply)) == (400, True), reply.text
    assert with_plugins.app.get(RULES).json["inspection_rules"] == []


def test_r_86_a_patch_is_held_to_the_signature_too(with_plugins):
    rule = create(with_plugins, {"op": "row-tag", "args": {"name": "a", "note": "b", "count": 2}})

    reply = patch(with_plugins, rule, {"op": "remove", "path": "/actions/0/args/name"})

    assert (reply.status_int, "/actions/0/args: missing: name" in fault(reply)) == (400, True)


def test_r_87_nobody_else_can_add_conditions(tmp_path, monkeypatch):
    names = ("ironic.inspection_rules.conditions", "ironic.inspection_rules.operators")
    site = packages.install(tmp_path / "site", "acme_conditions", "def odd(value):\n    return True\n",
                            {name: {"acme-odd": "odd"} for name in names})
    monkeypatch.setenv("PYTHONPATH", str(site))

    with standalone(tmp_path) as (_, endpoint):
        reply = httpx.post(
            f"{endpoint}/v1/inspection_rules", headers={versions.HEADER: versions.MAX_STRING},
            json={"actions": [LOG], "conditions": [{"op": "acme-odd", "args": [1]}]})

    assert (reply.status_code, "/conditions/0/op: there is no such operator" in reply.text) == (400, True)


def test_r_87_the_conditions_are_those_of_the_document():
    assert rules.OPERATORS.names() == [
        "changed", "contains", "eq", "ge", "gt", "in-net", "is-empty", "is-false", "is-none", "is-true", "le", "lt",
        "matches", "ne", "one-of"]
    groups = importlib.metadata.distribution("ironic-rules").entry_points.groups
    assert [group for group in groups if "rules" in group and not group.startswith("ironic_rules.")] == [
        "ironic.inspection_rules.actions"]


def test_r_88_rules_of_an_inspector_in_the_same_database_are_left_where_they_are(tmp_path):
    (tmp_path / "state").mkdir()
    file = tmp_path / "state" / "ironic-rules.sqlite"
    old = ("11111111-1111-4111-8111-111111111111", "from Inspector")
    migration.upgrade(f"sqlite:///{file}")  # a database that is not ours is refused
    with contextlib.closing(sqlite3.connect(file)) as database, database:
        database.execute("CREATE TABLE rules (uuid TEXT PRIMARY KEY, description TEXT)")
        database.execute("CREATE TABLE rule_conditions (id INTEGER PRIMARY KEY, rule TEXT, op TEXT, field TEXT)")
        database.execute("CREATE TABLE rule_actions (id INTEGER PRIMARY KEY, rule TEXT, action TEXT)")
        database.execute("INSERT INTO rules VALUES (?, ?)", old)
        database.execute("INSERT INTO rule_actions VALUES (1, ?, 'fail')", old[:1])

    with standalone(tmp_path) as (_, endpoint):
        assert machines.call(endpoint, "GET", "inspection_rules")["inspection_rules"] == []
        machine = machines.machine(8800)
        machines.enrol(endpoint, "old", machine)
        machines.start_inspection(endpoint, "old")
        machines.boot(endpoint, "old", machine)
        assert machines.wait_for_state(endpoint, "old", "manageable")["last_error"] is None

    with contextlib.closing(sqlite3.connect(file)) as database:
        assert database.execute("SELECT * FROM rules").fetchall() == [old]


def test_r_88_a_rule_in_inspectors_form_is_refused_and_every_difference_named(whole):
    reply = whole.app.post_json(RULES, {
        "conditions": [{"op": "ge", "field": "memory_mb", "value": 1024, "multiple": "all", "invert": True}],
        "actions": [{"action": "fail", "message": "too small"}]})

    assert reply.status_int == 400
    for place in ("/conditions/0/field: ", "/conditions/0/value: ", "/conditions/0/invert: ",
                  "/actions/0/op: ", "/actions/0/action: ", "/actions/0/message: "):
        assert place in fault(reply), fault(reply)


def test_r_89_an_in_band_inspection_by_the_real_agent_runs_a_simple_rule(tmp_path):
    machine = machines.machine(8900)
    with standalone(tmp_path) as (_, endpoint):
        rule = machines.call(endpoint, "POST", "inspection_rules", {
            "description": "in-band job",
            "conditions": [{"op": "eq", "args": ["{node.name}", "job"]},
                           {"op": "!is-empty", "args": ["{inventory[interfaces]}"]}],
            "actions": [{"op": "set-attribute", "args": ["/extra/inspected", "{inventory[memory][physical_mb]}"]}]})
        machines.enrol(endpoint, "job", machine)
        machines.start_inspection(endpoint, "job")

        assert agent("inspect", endpoint, machine)["uuid"] == machine.uuid

        node = machines.wait_for_state(endpoint, "job", "manageable")
        history = machines.call(endpoint, "GET", "nodes/job/history?detail=true")["history"]
    assert node["extra"] == {"inspected": machine.inventory["memory"]["physical_mb"]}
    assert [rule["uuid"] in event["event"] for event in history] == [True]
