"""``******`` is never stored in the place of a secret: a rule that would do that fails, and nothing is changed."""

from __future__ import annotations

from typing import Any

import pytest

from ironic_rules import rules
from ironic_rules.exceptions import RuleFailed
from ironic_rules.rules import InspectionRuleActionBase
from ironic_rules.rules.signatures import Registry
from tests.unit.rules import world
from tests.walking import walking

URL = "https://files:t0p@images.example.org/kernel"
INFO = {"ipmi_address": "192.0.2.1", "ipmi_username": "root", "ipmi_password": "s3cret", "deploy_kernel": URL}


def set_to(path: str, value: Any, op: str = "set-attribute") -> dict[str, Any]:
    return {"op": op, "args": {"path": path, "value": value}}


@walking("actions, where", [
    ([set_to("/driver_info/redfish_password", "{node.driver_info[ipmi_password]}")], "/driver_info/redfish_password"),
    ([set_to("/driver_info/redfish_password", "x{node.driver_info[ipmi_password]}")], "/driver_info/redfish_password"),
    ([set_to("/driver_info", "{node.driver_info}")], "/driver_info/ipmi_password"),
    ([set_to("/extra/copy", "{node.driver_info}")], "/extra/copy/ipmi_password"),
    ([set_to("/driver_info/deploy_ramdisk", "{node.driver_info[deploy_kernel]}")], "/driver_info/deploy_ramdisk"),
    ([set_to("site.password", "{node.driver_info[ipmi_password]}", "set-plugin-data")], "/site/password"),
    ([set_to("/site/tokens", "{node.driver_info[ipmi_password]}", "extend-plugin-data")], "/site/tokens"),
    ([set_to("/extra/tokens", "{node.driver_info[ipmi_password]}", "extend-attribute")], "/extra/tokens"),
    ([set_to("/extra/seen", "{node.driver_info[ipmi_password]}"),
      set_to("/driver_info/redfish_password", "{node.extra[seen]}")], "/driver_info/redfish_password"),
    ([{"op": "set-attribute", "args": ["/driver_info/{item[key]}", "{item[value]}"], "loop": "{node.driver_info}"}],
     "/driver_info/ipmi_password"),
    ([{"op": "set-port-attribute", "args": [world.PXE_MAC, "/extra/token", "{node.driver_info[ipmi_password]}"]}],
     "/extra/token"),
])
def test_a_plain_rule_that_would_store_a_mask_fails_and_is_named(actions: list[Any], where: str) -> None:
    given = world.facts(node={"driver_info": INFO})
    rule = world.rule(actions=actions)

    with pytest.raises(RuleFailed) as failed:
        world.run(rule, given=given)

    assert all(part in str(failed.value) for part in (
        rule["uuid"], f"/actions/{len(actions) - 1}", f"{where}: ****** cannot be stored")), str(failed.value)
    assert world.effects(given) == {"plugin_data": {}}


def test_a_sensitive_rule_says_nothing_of_it() -> None:
    rule = world.rule(sensitive=True, actions=[set_to("/driver_info/a_password", "{node.driver_info[ipmi_password]}")])
    with pytest.raises(RuleFailed) as failed:
        world.run(rule)
    assert "a_password" not in str(failed.value) and "***" not in str(failed.value)


@walking("path, value", [("/driver_info", "{node.driver_info}"),
                                             ("/driver_info/new_password", "{node.driver_info[ipmi_password]}")])
def test_a_rule_that_may_read_secrets_copies_them(path: str, value: str) -> None:
    given = world.facts(node={"driver_info": INFO})
    world.run(world.rule(sensitive=True, actions=[set_to(path, value)]), given=given, mask_secrets="sensitive")
    assert given.task is not None
    assert given.task.node.driver_info["new_password" if "new" in path else "ipmi_password"] == "s3cret"


def test_a_mask_is_stored_where_no_secret_belongs() -> None:
    given = world.facts()
    world.run(world.rule(actions=[set_to("/extra/seen", "{node.driver_info[ipmi_password]}"), set_to(
        "/description", "it is {node.driver_info[ipmi_password]}")]), given=given)
    assert given.task is not None
    assert (given.task.node.extra["seen"], given.task.node.description) == ("******", "it is ******")


@walking("op, args, place", [
    ("set-attribute", ["/driver_info/ipmi_password", "******"], "/actions/0/args/1"),
    ("set-attribute", {"path": "/extra/{inventory[hostname]}", "value": {"password": "******"}},
     "/actions/0/args/value"),
    ("set-plugin-data", ["site.password", "******"], "/actions/0/args/1"),
    ("extend-plugin-data", ["site.tokens", "******"], "/actions/0/args/1"),
    ("extend-attribute", ["/extra/tokens", "******"], "/actions/0/args/1"),
    ("set-port-attribute", [world.PXE_MAC, "/extra/secret", "******"], "/actions/0/args/2"),
])
def test_a_rule_with_the_mask_for_a_secret_is_refused(op: str, args: Any, place: str) -> None:
    problem, = world.validate(world.rule(actions=[{"op": op, "args": args}]))
    assert (problem.where, "****** cannot be stored" in problem.text) == (place, True)


class StoresInPlace(InspectionRuleActionBase):
    """A plug-in that does not use the drafts' functions."""

    formatted_params = ("value",)

    def __call__(self, task: Any, rule: Any, value: Any, place: str = "node") -> None:
        data = task.node.driver_info if place == "node" else rule.plugin_data
        data["redfish_password"] = value


@pytest.mark.parametrize("place", ["node", "plugin_data"])
@pytest.mark.parametrize("mode", ["always", "never"])
def test_a_plug_in_that_stores_a_mask_in_place_fails_its_rule(
        place: str, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = Registry("action", rules.ACTIONS._read)
    registry.add("stores-in-place", StoresInPlace)
    monkeypatch.setattr("ironic_rules.rules.compiler.ACTIONS", registry)
    given = world.facts()
    rule = world.rule(actions=[{"op": "stores-in-place", "args": ["{node.driver_info[ipmi_password]}", place]}])

    if mode == "always":
        with pytest.raises(RuleFailed, match=r"/redfish_password: \*{6} cannot be stored"):
            world.run(rule, given=given, mask_secrets=mode)
        assert world.effects(given) == {"plugin_data": {}}
    else:
        world.run(rule, given=given, mask_secrets=mode)
        assert "s3cret" in str(world.effects(given))
