"""Events as values: Ironic's payloads, levels, and filters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from ironic_rules.models import events

PAYLOADS = yaml.safe_load((Path(__file__).parents[2] / "vectors" / "notification_payloads.yaml").read_text())


def test_payloads_are_those_of_ironic():
    assert {name: sorted(fields) for name, fields in events._PAYLOADS.items()} == PAYLOADS


@pytest.mark.parametrize(("before", "after", "event", "status", "level"), [
    ("manageable", "inspecting", "inspect", "start", "info"), ("inspecting", "inspect wait", "wait", "success", "info"),
    ("inspecting", "manageable", "done", "end", "info"), ("inspecting", "inspect failed", "fail", "error", "error"),
    ("manageable", "available", "provide", "success", "info"),
])
def test_the_status_of_a_change_of_state_is_that_of_ironic(before, after, event, status, level):
    values: dict[str, Any] = {"uuid": "u", "provision_state": after}
    made = events.of_provision(values, before, None, event)
    assert (made.type, made.level) == (f"baremetal.node.provision_set.{status}", level)


def test_no_payload_has_a_secret():
    values = {"uuid": "u", "driver_info": {"redfish_password": "s"}, "properties": {"url": "http://u:p@h/"},
              "instance_info": {"image_url": "x", "configdrive": "y"}}
    [_, made] = events.of_resource("node", "update", values)
    found = orjson.loads(made.payload)
    assert found["driver_info"] == {"redfish_password": "******"}
    assert found["instance_info"] == {"image_url": "******", "configdrive": "******"}
    assert found["properties"] == {"url": "http://u:******@h/"}
    [_, made] = events.of_resource("volume target", "create", {"uuid": "u", "properties": {"auth": "s"}})
    assert list(orjson.loads(made.payload)["properties"]) == ["redacted_contents"]


@pytest.mark.parametrize(("patterns", "matches"), [
    (["*"], True), (["baremetal.node.*"], True), (["*.error"], False), ([], False),
    (["baremetal.port.*", "baremetal.node.create.end"], True)])
def test_patterns_select_events(patterns, matches):
    assert events.matches("baremetal.node.create.end", patterns) is matches


def test_levels_have_an_order():
    assert events.is_at_least("error", "info")
    assert not events.is_at_least("info", "warning")
    assert not events.is_at_least("critical", None)
