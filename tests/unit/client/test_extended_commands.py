from __future__ import annotations

import argparse
import json
from typing import Any

import pytest
from ironicclient.common import utils
from ironicclient.osc.v1 import baremetal_deploy_template
from ironicclient.osc.v1 import baremetal_inspection_rule as upstream
from osc_lib.exceptions import CommandError

from ironic_rules.client import extended_commands as ours
from ironic_rules.client import node_commands
from tests.unit.client.openstack_app import Connection, app, refusal, run
from tests.walking import walking

PAIRS = [
    (ours.CreateRule, upstream.CreateBaremetalInspectionRule),
    (ours.DeleteRule, upstream.DeleteBaremetalInspectionRule),
    (ours.ListRules, upstream.ListBaremetalInspectionRule),
    (ours.SetRule, upstream.SetBaremetalInspectionRule),
    (ours.UnsetRule, upstream.UnsetBaremetalInspectionRule),
    (node_commands.CreateTemplate, baremetal_deploy_template.CreateBaremetalDeployTemplate),
]
RULE = {"uuid": "u", "description": "d", "priority": 0, "phase": "main", "scope": "s", "sensitive": False,
        "built_in": False, "conditions": [], "actions": [], "links": []}


def options(command: type[Any]) -> dict[str, argparse.Action]:
    """Return the options of a command by their option strings."""
    parser = command(app(None), None).get_parser("openstack")
    return {text: action for action in parser._actions for text in action.option_strings or [action.dest]}


def answer(method: str, url: str, body: Any) -> Any:
    return RULE


@walking("our, their", PAIRS)
def test_every_option_of_python_ironicclient_is_still_there(our, their):
    assert {text: action.dest for text, action in options(their).items()}.items() <= {
        text: action.dest for text, action in options(our).items()}.items()


@pytest.mark.parametrize(("our", "their", "arguments"), [
    (*PAIRS[0], ["--actions", "[]", "--priority", "5", "--sensitive", "true"]),
    (*PAIRS[1], ["u", "v"]),
    (*PAIRS[3], ["u", "--description", "d", "--priority", "5"]),
    (*PAIRS[4], ["u", "--description", "--condition", "0"]),
])
def test_a_call_without_our_options_is_carried_out_by_python_ironicclient(monkeypatch, our, their, arguments):
    monkeypatch.setattr(their, "take_action", lambda self, parsed_args: parsed_args)
    command = our(app(Connection(answer)), None)
    parsed = command.get_parser("openstack").parse_args(arguments)

    assert command.take_action(parsed) is parsed


def test_a_list_has_no_column_for_a_field_that_the_service_lacks():
    # An empty text in its place would be a value of the rule, which an import refuses.
    connection = Connection(lambda method, url, body: {"inspection_rules": [RULE]})

    _, output = run(ours.ListRules, connection, "--long", "-f", "json")

    assert json.loads(output) == [{name: value for name, value in RULE.items() if name != "links"}]


def test_r76_a_rule_is_created_with_scope_in_the_types_of_the_api():
    connection = Connection(answer)

    status, output = run(ours.CreateRule, connection, "--actions", '[{"op": "fail"}]', "--scope", "s", "--sensitive",
                         "--priority", "5", "--uuid", "u", "--phase", "early", "-f", "json")

    assert connection.requests == [("POST", "/v1/inspection_rules", {
        "actions": [{"op": "fail"}], "scope": "s", "priority": 5, "sensitive": True, "uuid": "u", "phase": "early"})]
    assert (status, json.loads(output)) == (0, {name: value for name, value in RULE.items() if name != "links"})


def test_the_fields_that_python_ironicclient_lacks_are_created_set_and_unset():
    connection = Connection(answer)

    run(ours.CreateRule, connection, "--actions", "[]", "--name", "n", "--bundle", "b", "--max-nodes", "3",
        "--disabled")
    run(ours.SetRule, connection, "u", "--enabled")
    run(ours.UnsetRule, connection, "u", "--name", "--bundle", "--max-nodes")

    assert [body for _, _, body in connection.requests] == [
        {"actions": [], "name": "n", "bundle": "b", "max_nodes": 3, "enabled": False},
        [{"op": "add", "path": "/enabled", "value": True}],
        [{"op": "remove", "path": f"/{name}"} for name in ("name", "bundle", "max_nodes")]]


@pytest.mark.parametrize(("command", "arguments"), [
    (ours.CreateRule, ["--actions", "[]"]), (ours.CreateRule, ["--actions", "[]", "--scope", "s"]),
    (ours.SetRule, ["u", "--priority", "5"]), (ours.SetRule, ["u", "--scope", "s"]),
    (ours.UnsetRule, ["u", "--priority"]), (ours.UnsetRule, ["u", "--scope"]),
])
def test_warnings_are_shown_also_by_the_code_of_python_ironicclient(command, arguments, capsys):
    warning = {"pointer": "/actions/0", "text": "is odd", "nearest": None}

    _, output = run(command, Connection(lambda method, url, body: {**RULE, "warnings": [warning]}), *arguments)

    assert capsys.readouterr().err == "warning: /actions/0: is odd\n"
    assert "is odd" not in output


@walking("arguments", [["--priority", "high"], ["--sensitive", "maybe"], ["--conditions", "[,"]])
def test_r76_a_value_of_the_wrong_type_is_refused_before_anything_is_sent(arguments):
    connection = Connection(answer)

    with pytest.raises(CommandError):
        run(ours.CreateRule, connection, "--actions", "[]", "--scope", "s", *arguments)
    assert connection.requests == []


def test_r74_everything_is_set_in_one_request(tmp_path):
    connection = Connection(answer)
    actions = tmp_path / "actions.json"
    actions.write_text('[{"op": "fail"}]', encoding="utf-8")

    run(ours.SetRule, connection, "u/1", "--scope", "s", "--sensitive", "--uuid", "u/1", "--description", "d",
        "--priority", "7", "--phase", "main", "--conditions", "[]", "--actions", str(actions))

    (method, url, body), = connection.requests
    assert (method, url) == ("PATCH", "/v1/inspection_rules/u%2F1")
    assert {operation["op"] for operation in body} == {"add"}
    assert {operation["path"]: operation["value"] for operation in body} == {
        "/description": "d", "/phase": "main", "/scope": "s", "/priority": 7, "/sensitive": True,
        "/conditions": [], "/actions": [{"op": "fail"}]}


def test_r75_everything_is_unset_in_one_request():
    connection = Connection(answer)

    run(ours.UnsetRule, connection, "u", "--scope", "--description", "--conditions", "--action", "1")

    assert connection.requests == [("PATCH", "/v1/inspection_rules/u", [
        {"op": "remove", "path": path} for path in ("/description", "/scope", "/conditions", "/actions/1")])]


def test_r75_all_conditions_and_one_of_them_is_a_mistake():
    with pytest.raises(CommandError, match="--conditions"):
        run(ours.UnsetRule, Connection(answer), "u", "--conditions", "--condition", "0")


def test_r73_all_rules_are_deleted_by_the_request_of_the_document():
    connection = Connection(answer)

    assert run(ours.DeleteRule, connection, "--all") == (0, "Deleted all rules.\n")
    assert connection.requests == [("DELETE", "/v1/inspection_rules", None)]


@walking("arguments", [[], ["u", "--all"]])
def test_r73_deletion_wants_either_rules_or_all(arguments):
    connection = Connection(answer)

    with pytest.raises(CommandError, match="--all"):
        run(ours.DeleteRule, connection, *arguments)
    assert connection.requests == []


@walking("limit, sizes, count", [
    ([], [None], 2), (["--limit", "0"], [None, None, None], 5), (["--limit", "3"], ["3", "1"], 3)])
def test_r71_a_filtered_list_follows_links_as_far_as_it_must(limit, sizes, count):
    asked: list[str | None] = []

    def pages(method: str, url: str, body: Any) -> Any:
        path, _, text = url.partition("?")
        query = dict(word.split("=") for word in text.split("&"))
        assert (method, path, query.pop("phase")) == ("GET", "/v1/inspection_rules", "early")
        asked.append(query.pop("limit", None))
        first = int(query.pop("marker", -1)) + 1
        assert query == {}
        found = [{"uuid": str(number), "description": None} for number in range(first, min(first + 2, 5))]
        link = {"next": f"http://elsewhere/metal/v1/inspection_rules?marker={found[-1]['uuid']}"} if first < 4 else {}
        return {"inspection_rules": found, **link}

    status, output = run(ours.ListRules, Connection(pages), "--phase", "early", *limit, "-f", "json")

    assert [rule["uuid"] for rule in json.loads(output)] == [str(number) for number in range(count)]
    assert (status, asked) == (0, sizes)


@walking("arguments, query, columns", [
    ([], "", "uuid description phase priority scope enabled"),
    (["--scope", "s", "--long", "--marker", "m"], "scope=s&marker=m&detail=True",
     "uuid description phase priority scope enabled name bundle max_nodes nodes_counted built_in valid problems "
     "sensitive actions conditions created_at updated_at"),
    (["--fields", "priority", "uuid", "--sort", "execution:desc"],
     "sort_key=execution&sort_dir=desc&fields=priority%2Cuuid", "priority uuid"),
    (["--disabled", "--no-built-in", "--invalid", "--sensitive", "--name", "n", "--bundle", "b", "--description", "d",
      "--writes", "/driver", "--op", "in-net"],
     "name=n&bundle=b&enabled=False&sensitive=True&built_in=False&valid=False&description=d&writes=%2Fdriver&op=in-net",
     "uuid description phase priority scope enabled"),
])
def test_r71_a_list_has_the_columns_and_filters_of_its_options(arguments, query, columns):
    connection = Connection(lambda method, url, body: {
        "inspection_rules": [{**dict.fromkeys(ours.DETAILS), **RULE}]})

    _, output = run(ours.ListRules, connection, *arguments, "-f", "json")

    assert connection.requests == [("GET", f"/v1/inspection_rules?{query}", None)]
    assert [list(rule) for rule in json.loads(output)] == [columns.split()]


def test_r71_a_list_is_sorted_by_fields_as_by_python_ironicclient():
    connection = Connection(lambda method, url, body: {"inspection_rules": [
        {**RULE, "uuid": "u", "priority": 5}, {**RULE, "uuid": "v", "priority": 7}]})

    _, output = run(ours.ListRules, connection, "--sort", "priority:desc", "-f", "json")

    assert [rule["uuid"] for rule in json.loads(output)] == ["v", "u"]


def test_r71_long_and_chosen_fields_exclude_each_other():
    with pytest.raises(CommandError, match="--fields and --long"):
        run(ours.ListRules, Connection(answer), "--long", "--fields", "uuid")


def test_a_fault_is_shown_with_the_reason_of_the_service():
    def refuse(method: str, url: str, body: Any) -> Any:
        raise refusal("/scope: is too long")

    with pytest.raises(CommandError, match=r"^/scope: is too long \(HTTP 400\)$"):
        run(ours.SetRule, Connection(refuse), "u", "--scope", "v")


def carried_out(monkeypatch, our, their, *arguments: str) -> argparse.Namespace:
    """Return the arguments that are passed to python-ironicclient's code."""
    monkeypatch.setattr(their, "take_action", lambda self, parsed_args: parsed_args)
    command = our(app(Connection(answer)), None)
    parsed: argparse.Namespace = command.take_action(command.get_parser("openstack").parse_args(arguments))
    return parsed


def test_r75_several_conditions_are_unset_from_the_last_so_that_none_moves(monkeypatch):
    arguments = ["u", "--condition", "0", "--condition", "10", "--condition", "2", "--condition", "2"]
    connection = Connection(answer)
    run(ours.UnsetRule, connection, *arguments, "--scope")

    parsed = carried_out(monkeypatch, *PAIRS[4], *arguments)

    assert parsed.condition == ["10", "2", "0"]
    assert [operation["path"] for operation in connection.requests[0][2]] == [
        "/scope", "/conditions/10", "/conditions/2", "/conditions/0"]


@pytest.mark.parametrize("description", ["2024", "true", "[rack 7]", 'a "b"=c'])
def test_r74_a_description_is_a_text_whatever_it_looks_like(monkeypatch, description):
    parsed = carried_out(monkeypatch, *PAIRS[3], "u", "--description", description)

    assert utils.args_array_to_patch("add", [f"description={parsed.description}"]) == [
        {"op": "add", "path": "/description", "value": description}]


@pytest.mark.parametrize(("command", "arguments", "told"), [
    (ours.ShowRule, ["u"], True), (ours.ShowRule, ["u", "--fields", "uuid"], False),
    (ours.ListRules, ["--long"], True), (ours.ListRules, [], False)])
def test_it_is_told_that_conditions_and_actions_are_withheld(command, arguments, told, capsys):
    shown = {name: value for name, value in RULE.items() if name not in ("conditions", "actions")}
    connection = Connection(lambda method, url, body: shown if "/u" in url else {"inspection_rules": [shown]})

    status, output = run(command, connection, *arguments, "-f", "json")

    assert status == 0 and json.loads(output)
    assert ("shown to administrators only" in capsys.readouterr().err) is told
