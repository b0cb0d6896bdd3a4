"""The form of conditions and actions: arguments, inversion, loops, templates (R-22 to R-34)."""

from __future__ import annotations

from typing import Any

import pytest

from ironic_rules import rules
from ironic_rules.exceptions import RuleFailed
from tests.functional.rows.conftest import RULES, create, effects, holds, inspected
from tests.unit.rules import world
from tests.walking import walking

#: One value of each JSON type, and the template that reads it.
TYPED = {"text": "40", "integer": 40, "float": 2.5, "true": True, "false": False, "null": None, "list": [1, "a"],
         "empty": [], "object": {"a": [None]}}


def set_data(value: Any) -> dict[str, Any]:
    return {"op": "set-plugin-data", "args": ["got", value]}


def seen(value: Any, **facts: Any) -> Any:
    """Return what an action gets for the argument ``value``."""
    return effects(set_data(value), **facts)["plugin_data"]["got"]


def appended(loop: Any, value: Any = "{item}", **facts: Any) -> list[Any]:
    """Return the values that an action in a loop gets in each run."""
    action = {"op": "extend-plugin-data", "args": ["got", value], "loop": loop}
    found: list[Any] = effects(action, **facts)["plugin_data"]["got"]
    return found


@walking("args", [["x86_64", "x86_64"], {"values": ["x86_64", "x86_64"]}])
def test_r_22_conditions_take_arguments_as_a_list_or_by_name(args):
    other = [*args[:1], "y"] if isinstance(args, list) else {"values": ["x86_64", "y"]}

    assert len(world.run(world.rule(conditions=[{"op": "eq", "args": args}]))) == 1
    assert world.run(world.rule(conditions=[{"op": "eq", "args": other}])) == []


def test_r_22_actions_take_arguments_as_a_list_or_by_name():
    as_list = effects({"op": "extend-plugin-data", "args": ["got", 1]})
    by_name = effects({"op": "extend-plugin-data", "args": {"path": "got", "value": 1}})

    assert as_list == by_name == {"plugin_data": {"got": [1]}}


def test_r_22_the_api_keeps_either_form(whole):
    forms = [{"op": "eq", "args": ["a", "a"]}, {"op": "eq", "args": {"values": ["a", "a"], "force_strings": True}}]
    actions = [{"op": "set-attribute", "args": args} for args in (["/extra/a", 1], {"path": "/extra/b", "value": 2})]

    rule = create(whole, *actions, conditions=forms)

    assert (rule["conditions"], rule["actions"]) == (forms, actions)
    assert inspected(whole)["extra"] == {"a": 1, "b": 2}


@pytest.mark.parametrize("mark", ["!", "! "])
def test_r_23_an_exclamation_mark_with_or_without_a_space_inverts(whole, mark):
    assert (holds(f"{mark}eq", "a", "b"), holds(f"{mark}eq", "a", "a")) == (True, False)

    rule = create(whole, {"op": "set-attribute", "args": ["/extra/a", 1]},
                  conditions=[{"op": f"{mark}eq", "args": ["{inventory[hostname]}", "nobody"]}])

    assert rule["conditions"][0]["op"] == f"{mark}eq"
    assert inspected(whole)["extra"] == {"a": 1}


def test_r_23_an_inverted_condition_in_a_loop_inverts_each_run():
    assert holds("!eq", "{item}", "a", loop=["a", "b"]) is True
    assert holds("!eq", "{item}", "a", loop=["a", "b"], multiple="all") is False


def test_r_24_an_action_runs_once_for_each_item_of_its_loop():
    assert appended(["a", 2, ["c"]]) == ["a", 2, ["c"]]
    assert effects({"op": "extend-plugin-data", "args": ["got", 1], "loop": []}) == {"plugin_data": {}}


def test_r_24_an_object_is_one_item_and_one_of_data_a_loop_over_its_keys_and_values():
    assert appended({"a": 1, "b": [2]}) == [{"a": 1, "b": [2]}]
    assert appended({"a": 1, "b": 2}, "{item[a]}={item[b]}") == ["1=2"]
    assert appended("{plugin_data[o]}", "{item[key]}={item[value]}",
                    plugin_data={"o": {"a": 1, "b": 2}}) == ["a=1", "b=2"]


def test_r_24_items_may_have_templates():
    assert appended(["{inventory[hostname]}", {"count": "{inventory[cpu][count]}"}]) == ["rack07-node3", {"count": 40}]


@walking("multiple", [None, "any"])
def test_r_25_any_needs_one_item_that_matches_and_is_the_default(multiple):
    assert holds("eq", "{item}", "b", loop=["a", "b", "c"], multiple=multiple) is True
    assert holds("eq", "{item}", "x", loop=["a", "b", "c"], multiple=multiple) is False
    assert holds("eq", "{item}", "x", loop=[], multiple=multiple) is False


def test_r_26_all_needs_every_item_to_match():
    assert holds("gt", "{item}", 1, loop=[2, 3], multiple="all") is True
    assert holds("gt", "{item}", 1, loop=[2, 1, 3], multiple="all") is False
    assert holds("gt", "{item}", 1, loop=[], multiple="all") is True


def test_r_27_first_looks_only_at_the_first_item():
    assert holds("eq", "{item}", "a", loop=["a", "b"], multiple="first") is True
    assert holds("eq", "{item}", "b", loop=["a", "b"], multiple="first") is False
    assert holds("eq", "{item}", "x", loop=[], multiple="first") is False


def test_r_28_last_looks_only_at_the_last_item():
    assert holds("eq", "{item}", "b", loop=["a", "b"], multiple="last") is True
    assert holds("eq", "{item}", "a", loop=["a", "b"], multiple="last") is False
    assert holds("eq", "{item}", "x", loop=[], multiple="last") is False


@walking("multiple, place", [("first", 0), ("last", -1)])
def test_r_28_other_items_are_not_even_evaluated(multiple, place):
    # A text with a missing part cannot be evaluated.
    items = [{}, {}, {}]
    items[place] = {"a": "x"}

    assert holds("eq", "{item[a]}-", "x-", loop=items, multiple=multiple) is True


def test_r_29_item_is_the_loop_variable_and_keeps_its_type():
    assert appended(list(TYPED.values())) == list(TYPED.values())
    assert appended([{"a": ["x", 2]}], "{item[a][1]}") == [2]
    assert holds("eq", "{item}", 8, loop=[8]) is True
    assert holds("eq", "{item}", 8, loop=["8"]) is False


def test_r_29_a_loop_changes_nothing_for_the_other_arguments():
    assert holds("eq", "{inventory[cpu][count]}", 40, loop=[0]) is True
    assert holds("eq", 40, "40", loop=[0]) is False


def test_r_29_item_has_no_value_outside_a_loop():
    problems = rules.validate(world.rule(conditions=[{"op": "is-none", "args": ["{item}"]}]))

    assert [problem.where for problem in problems] == ["/conditions/0/args/0"]


def test_r_30_all_five_names_can_be_used_in_templates(whole):
    names = {
        "node": "<{node.driver_info[ipmi_address]}>", "ports": "<{ports[0][address]}>",
        "port_groups": "<{port_groups[0].name}>", "inventory": "<{inventory[interfaces][0][mac_address]}>",
        "plugin_data": "<{plugin_data[sent][a]}>"}
    create(whole, {"op": "set-attribute", "args": ["/extra/names", names]})
    uuid = whole.enroll("manageable", driver_info={"ipmi_address": "192.0.2.40"})
    group = whole.app.post_json("/v1/portgroups", {"node_uuid": uuid, "name": f"group-of-{uuid}"})
    mac, body = whole.machine()

    node = whole.inspect(uuid, {**body, "sent": {"a": "sent"}})

    assert group.status_int == 201
    assert node["extra"]["names"] == {
        "node": "<192.0.2.40>", "ports": f"<{mac}>", "port_groups": f"<group-of-{uuid}>", "inventory": f"<{mac}>",
        "plugin_data": "<sent>"}


@walking("op, args, where, expected", [
    ("set-attribute", ["/extra/{plugin_data[word]}", "x"], "node", {"extra": {**world.NODE["extra"], "WORD": "x"}}),
    ("set-plugin-data", ["made.{plugin_data[word]}", "x"], "plugin_data", {"word": "WORD", "made": {"WORD": "x"}}),
    ("set-capability", ["{plugin_data[word]}", "x"], "node",
     {"properties": {"capabilities": world.NODE["properties"]["capabilities"] + ",WORD:x"}}),
    ("add-trait", ["CUSTOM_{plugin_data[word]}"], "traits", ["CUSTOM_WORD"]),
    ("log", ["said {plugin_data[word]}"], "messages", [["info", "said WORD"]]),
])
def test_r_30_every_text_argument_of_an_action_may_be_a_template(op, args, where, expected):
    assert effects({"op": op, "args": args}, plugin_data={"word": "WORD"})[where] == expected


def test_r_30_the_message_of_fail_may_be_a_template():
    with pytest.raises(RuleFailed, match="only 40 CPUs"):
        effects({"op": "fail", "args": ["only {inventory[cpu][count]} CPUs"]})


def test_r_30_every_text_argument_of_a_condition_may_be_a_template():
    data = {"regex": "rack[0-9]+-.*", "net": "192.0.2.0/24", "word": "x86_64"}

    assert holds("matches", "{inventory[hostname]}", "{plugin_data[regex]}", plugin_data=data) is True
    assert holds("in-net", "{inventory[bmc_address]}", "{plugin_data[net]}", plugin_data=data) is True
    assert holds("one-of", "x86_64", ["a", "{plugin_data[word]}"], plugin_data=data) is True


def test_r_30_the_key_of_an_object_stays_text_with_a_warning(whole):
    value = {"{inventory[hostname]}": "{inventory[hostname]}"}
    made = create(whole, {"op": "set-attribute", "args": {"path": "/extra/names", "value": value}})

    assert [warning["pointer"] for warning in made["warnings"]] == ["/actions/0/args/value/{inventory[hostname]}"]
    assert inspected(whole, {"hostname": "n7"})["extra"]["names"] == {"{inventory[hostname]}": "n7"}


@walking("mode, sensitive, password", [
    ("always", False, "******"), ("always", True, "******"), ("sensitive", False, "******"),
    ("sensitive", True, "s3cret"), ("never", False, "s3cret"), ("never", True, "s3cret"),
])
def test_r_31_node_is_a_mapping_that_hides_secrets_as_configured(mode, sensitive, password):
    paths = ["{node.driver_info[ipmi_password]}", "{node[driver_info].ipmi_password}", "{node[driver_info]} is",
             "{node} is", "is {node.driver_info[ipmi_password]}", "is {node.driver_info}"]
    given = world.facts()

    world.run(world.rule(sensitive=sensitive, actions=[set_data(paths)]), given=given, mask_secrets=mode)

    one, other, info, node, text, longer = given.plugin_data["got"]
    assert {one, other} == {password}
    assert text == f"is {password}"
    for whole in (info, node, longer):
        assert f"'ipmi_password': '{password}'" in whole and "'ipmi_username': 'admin'" in whole


def test_r_31_secrets_are_hidden_unless_configured_otherwise(whole):
    create(whole, {"op": "set-attribute", "args": ["/extra/read", "is {node.driver_info}"]}, sensitive=True)

    node = inspected(whole, driver_info={"ipmi_password": "hunter2", "ipmi_username": "root"})

    assert node["extra"]["read"] == "is {'ipmi_password': '******', 'ipmi_username': 'root'}"


@walking("path", ["inventory._data[password]", "inventory.password.__class__",
                                  "node.driver_info.__class__"])
def test_r_31_nothing_behind_the_mapping_can_be_reached(path):
    assert holds("is-none", f"{{{path}}}", inventory={"password": "s3cret"}) is True


@walking("path", ["node.__dict__", "node._values", "node.__class__.__init__", "node.read"])
def test_r_31_nothing_behind_the_node_can_be_named(path):
    problem, = rules.validate(world.rule(conditions=[{"op": "is-none", "args": {"value": f"{{{path}}}"}}]))

    assert (problem.where, problem.text.partition(";")[0]) == (
        "/conditions/0/args/value", "column 7: there is no such field")


@walking("name", TYPED)
def test_r_32_a_single_template_keeps_the_type_of_its_value(name):
    found = seen(f"{{plugin_data[{name}]}}", plugin_data=TYPED)

    assert (found, type(found)) == (TYPED[name], type(TYPED[name]))


def test_r_32_it_does_so_at_any_depth_of_an_argument():
    assert seen({"a": ["{plugin_data[integer]}", {"b": "{plugin_data[list]}"}]}, plugin_data=TYPED) == {
        "a": [40, {"b": [1, "a"]}]}


def test_r_32_with_text_around_it_becomes_text():
    assert seen(" {plugin_data[integer]}", plugin_data=TYPED) == " 40"
    assert seen("{plugin_data[integer]}{plugin_data[float]}", plugin_data=TYPED) == "402.5"
    assert seen("{{plugin_data[integer]}}", plugin_data=TYPED) == "{plugin_data[integer]}"


def test_r_32_conditions_get_the_value_and_not_its_text():
    assert holds("is-none", "{plugin_data[null]}", plugin_data=TYPED) is True
    assert holds("eq", "{inventory[cpu][count]}", 40) is True
    assert holds("eq", "{inventory[cpu][count]}", "40") is False
    assert holds("gt", "{inventory[cpu][count]}", 9) is True
    assert holds("is-empty", "{plugin_data[empty]}", plugin_data=TYPED) is True
    assert holds("eq", "{inventory[cpu][flags]}", ["vmx", "aes", "pse"]) is True


def test_r_32_a_node_gets_the_value_and_not_its_text(whole):
    create(whole, {"op": "set-attribute", "args": ["/extra/cpu", "{inventory[cpu]}"]})
    cpu = {"count": 8, "architecture": "x86_64", "flags": ["a"]}

    assert inspected(whole, {"cpu": cpu})["extra"] == {"cpu": cpu}


def test_r_33_a_loop_may_be_a_list_or_an_object_from_the_data():
    assert appended("{inventory[cpu][flags]}") == ["vmx", "aes", "pse"]
    assert appended("{inventory[memory]}") == [{"key": "physical_mb", "value": 393216}]
    assert holds("eq", "{item[name]}", "ens1f1", loop="{inventory[interfaces]}") is True
    assert holds("eq", "{item[name]}", "ens1f1", loop="{inventory[interfaces]}", multiple="all") is False


def test_r_33_the_api_takes_such_a_loop(whole):
    loop = "{inventory[interfaces]}"
    create(whole, {"op": "extend-attribute", "args": ["/extra/names", "{item[name]}"], "loop": loop},
           conditions=[{"op": "!is-empty", "args": ["{item[mac_address]}"], "loop": loop}])

    assert inspected(whole)["extra"] == {"names": ["eth0"]}


def test_r_33_data_that_are_no_list_make_no_loop():
    assert holds("is-true", True, loop="{inventory[hostname]}") is None
    with pytest.raises(RuleFailed, match="neither a list nor an object"):
        appended("{inventory[hostname]}")


@walking("path", ["inventory[nosuch]", "inventory[cpu][nosuch].deeper", "inventory[interfaces][99]",
                                  "inventory[hostname][x]", "node.extra.nosuch", "plugin_data[nosuch]"])
def test_r_34_a_missing_path_is_none_for_a_condition(path):
    missing = f"{{{path}}}"

    assert holds("is-none", missing) is True
    assert holds("is-empty", missing) is True
    assert holds("eq", missing, None) is False
    assert holds("eq", missing, f"{{{missing}}}") is False
    assert holds("contains", missing, "nosuch") is False
    assert holds("in-net", missing, "0.0.0.0/0") is False
    assert holds("gt", missing, 0) is False


@walking("op", ["eq", "!eq", "! eq"])
@walking("path", ["inventory[nosuch]", "inventory[bmc_v6address]"])
def test_r_34_text_with_a_missing_path_or_null_in_it_is_neither_equal_nor_unequal(op, path):
    for other in ("a", "aNone", f"a{{{{{path}}}}}"):
        assert holds(op, f"a{{{path}}}", other) is None


@walking("value", ["{inventory[nosuch]}", "text {inventory[nosuch]}", ["{inventory[nosuch]}"]])
def test_r_34_a_missing_path_fails_an_action_and_is_named(value):
    with pytest.raises(RuleFailed, match=r"/actions/0: \{inventory\[nosuch\]\} is missing"):
        effects(set_data(value))


def test_r_34_an_inspection_goes_on_past_a_condition_on_missing_data(whole):
    create(whole, {"op": "fail", "args": ["must not run"]},
           conditions=[{"op": "in-net", "args": ["{inventory[nosuch]}", "192.0.2.0/24"]}])

    assert inspected(whole)["provision_state"] == "manageable"


def test_r_34_a_name_that_can_never_be_there_has_a_warning_with_its_place(whole):
    reply = whole.app.post_json(RULES, {"actions": [{"op": "log", "args": {"msg": "{inventry[cpu]}"}}]})

    assert reply.status_int == 201
    warning, = reply.json["warnings"]
    assert (warning["pointer"], warning["nearest"]) == ("/actions/0/args/msg", "inventory")
    assert inspected(whole)["provision_state"] == "manageable"


def test_r_31_a_rule_never_stores_the_mask_in_the_place_of_a_secret(whole):
    info = {"ipmi_password": "hunter2", "ipmi_username": "root"}
    rule = create(whole, {"op": "set-attribute", "args": ["/driver_info", "{node.driver_info}"]})

    node = inspected(whole, driver_info=info)

    assert node["provision_state"] == "inspect failed"
    for part in (rule["uuid"], "/actions/0", "/driver_info/ipmi_password: ****** cannot be stored"):
        assert part in node["last_error"]
    assert whole.row(node["uuid"]).driver_info == info
