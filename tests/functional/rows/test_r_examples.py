"""R-59 and R-60: the two examples of document 000, with the whole service."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa
import yaml

from ironic_rules.db.tables import node_bmc_addresses
from tests.functional.rows import drivers
from tests.functional.rows.conftest import RULES, inspected, stored
from tests.functional.rows.test_r_actions import did, reason
from tests.functional.whole import Whole, fault

#: The examples of document 000, as printed there.
FIRST = """
- description: Initialize freshly discovered nodes
  sensitive: true
  conditions:
    - op: is-true
      args: ["{node.auto_discovered}"]
    - op: "!is-empty"
      args: ["{plugin_data[bmc_address}"]
  actions:
    - op: set-attribute
      args: ["/driver", "ipmi"]
    - op: set-attribute
      args: ["/driver_info/ipmi_address", "{plugin_data[bmc_address]}"]
    - op: set-attribute
      args: ["/driver_info/ipmi_username", "admin"]
    - op: set-attribute
      args: ["/driver_info/ipmi_password", "pa$$w0rd"]
"""
SECOND = """
- description: Initialize Dell nodes using IPv6
  sensitive: true
  conditions:
    - op: is-true
      args: ["{node.auto_discovered}"]
    - op: contains
      args: ["{inventory[system_vendor][manufacturer]}", "(?i)dell"]
  actions:
    - op: set-attribute
      args: ["/driver", "idrac"]
    - op: set-attribute
      args: ["/driver_info/redfish_address", "https://{inventory[bmc_v6address]}"]
    - op: set-attribute
      args: ["/driver_info/redfish_username", "root"]
    - op: set-attribute
      args: ["/driver_info/redfish_password", "calvin"]
"""
MISSING_BRACKET, BRACKET = "{plugin_data[bmc_address}", "{plugin_data[bmc_address]}"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Whole]:
    """The whole service with the drivers that the examples name."""
    with drivers.running(tmp_path_factory.mktemp("actions")) as service:
        yield service


@pytest.fixture(autouse=True)
def no_known_bmcs(whole: Whole) -> Iterator[None]:
    """Forget the BMC addresses of a test's nodes: the machines of the next one have the same."""
    yield
    whole.db.write(lambda conn: conn.execute(sa.delete(node_bmc_addresses)))


def example(text: str) -> dict[str, Any]:
    """Return the only rule of a YAML text."""
    rule, = yaml.safe_load(text)
    return dict(rule)


def secrets_of(whole: Whole, node: dict[str, Any]) -> Any:
    """Return the ``driver_info`` of a node as it is stored."""
    return whole.row(node["uuid"]).driver_info


def test_r_59_the_first_example_is_refused_with_the_place_of_its_missing_bracket(whole):
    reply = whole.app.post_json(RULES, example(FIRST))

    column = MISSING_BRACKET.index("}") + 1
    assert reply.status_int == 400
    assert f"/conditions/1/args/0: column {column}: ']' is missing" in fault(reply)
    assert whole.app.get(RULES).json["inspection_rules"] == []


@pytest.mark.parametrize(("inventory", "address"), [
    ({"bmc_address": "192.0.2.10"}, "192.0.2.10"),
    ({"bmc_address": None, "bmc_v6address": "2001:DB8::A"}, "2001:db8::a"),
])
def test_r_59_the_first_example_gives_a_discovered_node_its_driver_and_credentials(whole, inventory, address):
    rule = whole.app.post_json(RULES, example(FIRST.replace(MISSING_BRACKET, BRACKET))).json
    assert (rule["conditions"], rule["actions"]) == (None, None)

    node = did(inspected(whole, inventory, auto_discovered=True))

    assert (node["driver"], node["power_interface"], node["auto_discovered"]) == ("ipmi", "faulty", True)
    assert node["driver_info"] == {"ipmi_address": address, "ipmi_username": "admin", "ipmi_password": "******"}
    assert secrets_of(whole, node) == {
        "ipmi_address": address, "ipmi_username": "admin", "ipmi_password": "pa$$w0rd"}
    # The address was stored by the hook validate-interfaces from the inventory, it was not sent by the ramdisk.
    assert stored(whole, node["uuid"])["plugin_data"]["bmc_address"] == address


def test_r_59_the_first_example_works_for_a_machine_that_nobody_enrolled(tmp_path):
    with drivers.running(tmp_path, "\n[auto_discovery]\nenabled = true\ndriver = fake-hardware\n") as whole:
        assert whole.app.post_json(RULES, example(FIRST.replace(MISSING_BRACKET, BRACKET))).status_int == 201
        _, body = whole.machine()
        body["inventory"]["bmc_address"] = "192.0.2.10"

        reply = whole.app.post_json("/v1/continue_inspection", body)

        assert reply.status_int == 200, reply.text
        uuid = reply.json["node"]["uuid"]
        whole.at_rest(uuid)
        node = whole.show(uuid)
        assert (node["auto_discovered"], node["driver"], node["last_error"]) == (True, "ipmi", None)
        assert secrets_of(whole, node) == {
            "ipmi_address": "192.0.2.10", "ipmi_username": "admin", "ipmi_password": "pa$$w0rd"}


@pytest.mark.parametrize(("inventory", "discovered"), [
    ({"bmc_address": "192.0.2.10"}, False), ({}, True), ({"bmc_address": "0.0.0.0"}, True)])
def test_r_59_the_first_example_leaves_other_nodes_alone(whole, inventory, discovered):
    whole.app.post_json(RULES, example(FIRST.replace(MISSING_BRACKET, BRACKET)))

    node = did(inspected(whole, inventory, auto_discovered=discovered))

    assert (node["driver"], node["driver_info"]) == ("fake-hardware", {})


@pytest.mark.parametrize("manufacturer", ["Dell Inc.", "DELL", "dell emc"])
def test_r_60_the_second_example_gives_a_discovered_dell_machine_its_driver_and_credentials(whole, manufacturer):
    assert whole.app.post_json(RULES, example(SECOND)).status_int == 201

    node = did(inspected(
        whole, {"system_vendor": {"manufacturer": manufacturer}, "bmc_v6address": "2001:db8::a"},
        auto_discovered=True))

    assert (node["driver"], node["driver_info"]["redfish_password"]) == ("idrac", "******")
    assert secrets_of(whole, node) == {
        "redfish_address": "https://2001:db8::a", "redfish_username": "root", "redfish_password": "calvin"}


@pytest.mark.parametrize(("manufacturer", "discovered"), [("HPE", True), (None, True), ("Dell Inc.", False)])
def test_r_60_the_second_example_leaves_other_nodes_alone(whole, manufacturer, discovered):
    whole.app.post_json(RULES, example(SECOND))

    node = did(inspected(
        whole, {"system_vendor": {"manufacturer": manufacturer}, "bmc_v6address": "2001:db8::a"},
        auto_discovered=discovered))

    assert (node["driver"], node["driver_info"]) == ("fake-hardware", {})


def test_r_60_without_the_address_the_second_example_fails_and_tells_no_secret(whole):
    rule = whole.app.post_json(RULES, example(SECOND)).json

    node = inspected(whole, {"system_vendor": {"manufacturer": "Dell"}, "bmc_v6address": None},
                     auto_discovered=True)

    assert rule["uuid"] in reason(node)
    assert "bmc_v6address" not in node["last_error"]
    assert (node["driver"], node["driver_info"]) == ("fake-hardware", {})
