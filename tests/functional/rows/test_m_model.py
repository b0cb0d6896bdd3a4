"""Inspection data, hooks by name, and what is stored of an inspection (M-01 to M-12)."""

from __future__ import annotations

import importlib.metadata
import json
import re
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import mysql

from ironic_rules import policies, samples
from ironic_rules import service as composition
from ironic_rules.api.routes import walk_routes
from ironic_rules.api.v1 import RootController
from ironic_rules.conf import opts
from ironic_rules.db.tables import node_inventory, nodes
from ironic_rules.inspection.hooks import loader
from ironic_rules.models import states
from tests.functional.rows import hooks
from tests.functional.rows.conftest import finish, stored, waiting
from tests.functional.whole import fault
from tests.unit.doc_extensions import extension

DISTRIBUTION = importlib.metadata.distribution("ironic-rules")


def hook_names() -> set[str]:
    return {point.name for point in DISTRIBUTION.entry_points.select(group=loader.GROUP)}


@pytest.mark.parametrize(("field", "value", "place"), [
    ("cpu", {"count": "four"}, "/inventory/cpu/count"), ("memory", [], "/inventory/memory"),
    ("disks", [{"name": "/dev/sda", "size": "big"}], "/inventory/disks/0/size"),
    ("bmc_address", "somewhere", "/inventory/bmc_address"),
])
def test_m_01_the_inventory_has_a_form_and_other_values_are_warned_about(whole, field, value, place):
    uuid, body = waiting(whole)
    body["inventory"][field] = value

    finish(whole, uuid, body)

    shown = whole.app.get(f"/v1/nodes/{uuid}/inventory").json
    assert shown["inventory"][field] == value
    assert place in {warning["path"] for warning in shown["warnings"]}


def test_m_01_plugin_data_have_any_form(whole):
    uuid, body = waiting(whole)
    free = {"mine": [1, {"deep": None}], "cpu": "not the inventory's", "": False, "ünï": 1.5}

    finish(whole, uuid, {**body, **free})

    data = stored(whole, uuid)
    assert {key: data["plugin_data"][key] for key in free} == free
    assert data["inventory"] == body["inventory"]


def test_m_01_each_inspection_makes_a_version_of_its_own(whole):
    uuid, body = whole.enroll("manageable"), whole.machine()[1]
    for hostname in ("first", "second", "third"):
        body["inventory"]["hostname"] = hostname
        whole.inspect(uuid, body)

    assert stored(whole, uuid)["inventory"]["hostname"] == "third"
    assert [json.loads(row.inventory_data)["hostname"] for row in rows_of(whole, uuid)] == ["first", "second", "third"]


def test_m_02_a_hook_that_changes_the_inventory_fails_the_inspection(whole):
    uuid, body = waiting(whole)

    with hooks.added(whole, hooks.Calling(hooks.change_inventory)):
        node = finish(whole, uuid, body)

    assert node["provision_state"] == "inspect failed"
    assert "it changed the inventory" in node["last_error"]


def test_m_02_the_inventory_is_stored_as_it_came(whole):
    uuid, _ = waiting(whole)
    body = samples.inventory("dell-r660")

    finish(whole, uuid, body)

    assert stored(whole, uuid)["inventory"] == body["inventory"]


def test_m_03_the_interfaces_in_the_plugin_data_are_the_inventorys_with_documented_fields(whole):
    uuid, body = waiting(whole)
    sent, = body["inventory"]["interfaces"]

    finish(whole, uuid, body)

    data = stored(whole, uuid)["plugin_data"]
    # Inspector had "interfaces", which is different from that of the inventory.
    assert "interfaces" not in data
    common = {**sent, "pxe_enabled": False, "ipv6_address": None}
    assert data["all_interfaces"] == {"eth0": common}
    assert data["valid_interfaces"] == {"eth0": {**common, "is_added": True}}
    reference = extension("hook_reference").page()
    assert [name for name in ("all_interfaces", "valid_interfaces", "pxe_enabled", "ipv6_address", "is_added")
            if f"``{name}``" not in reference] == []


def test_m_04_the_names_of_hooks_have_hyphens(whole):
    assert {name for name in hook_names() if not re.fullmatch(r"[a-z]+(-[a-z]+)*", name)} == set()
    # The document itself uses an underscore once.
    assert loader.load(["validate_interfaces"])[0][0] == "validate-interfaces"


def test_m_05_four_hooks_run_by_default_and_all_speak_of_inspection():
    conf = composition.prepare_config([], config_files=[])

    assert loader.parse(conf.inspector.hooks) == ["ramdisk-error", "validate-interfaces", "ports", "architecture"]
    routes = [str(route) for route in walk_routes(RootController())]
    options = [option.dest for _, options in opts.list_opts() for option in options]
    rules = [rule.name for rule in policies.list_rules()]
    scripts = [point.name for point in DISTRIBUTION.entry_points]
    assert [name for name in (*routes, *options, *rules, *scripts) if "introspect" in name] == []


def test_m_06_inspection_needs_managed_boot_unless_the_operator_says_otherwise(whole):
    uuid = whole.enroll("manageable")
    default = composition.prepare_config([], config_files=[]).inspector.require_managed_boot

    with whole.option("inspector", "require_managed_boot", default):
        reply = whole.ask(uuid, "inspect")
        assert (reply.status_int, "[inspector]require_managed_boot" in fault(reply)) == (400, True)
        assert whole.show(uuid)["provision_state"] == "manageable"

    assert whole.provision(uuid, "inspect")["provision_state"] == "inspect wait"


def test_m_07_no_filter_but_that_for_dnsmasq_can_be_chosen():
    points = {f"{point.group} {point.name}" for point in DISTRIBUTION.entry_points}
    options = {f"{group} {option.dest}" for group, options in opts.list_opts() for option in options}

    assert [name for name in points | options if "iptables" in name] == []
    assert "pxe_filter driver" not in options


def rows_of(whole: Any, uuid: str) -> list[Any]:
    """Return the rows of a node in the table of inventories, oldest first, JSON as its text."""
    query = sa.text("SELECT i.* FROM node_inventory i JOIN nodes n ON n.id = i.node_id WHERE n.uuid = :uuid "
                    "ORDER BY i.id")
    with whole.db.reader() as conn:
        return list(conn.execute(query, {"uuid": uuid}))


def test_m_08_inventories_are_one_table_with_the_columns_of_the_document(whole):
    inspector = sa.inspect(whole.db.engine)
    columns = {column["name"]: column for column in inspector.get_columns("node_inventory")}
    key, = inspector.get_foreign_keys("node_inventory")

    assert inspector.get_pk_constraint("node_inventory")["constrained_columns"] == ["id"]
    assert isinstance(columns["id"]["type"], sa.Integer)
    assert {"inventory_data", "plugin_data"} <= columns.keys()
    assert (columns["node_id"]["nullable"], key["referred_table"], key["referred_columns"]) == (True, "nodes", ["id"])
    index, = [index for index in inspector.get_indexes("node_inventory") if index["name"] == "inventory_node_id_idx"]
    assert index["column_names"][0] == "node_id"
    for name in ("inventory_data", "plugin_data"):
        assert node_inventory.c[name].type.compile(dialect=mysql.dialect()) == "LONGTEXT"


def test_m_08_a_new_inspection_does_not_delete_the_old_one(whole):
    uuid, body = whole.enroll("manageable"), whole.machine()[1]
    for _ in range(2):
        whole.inspect(uuid, body)
    whole.inspect(uuid, {**body, "error": "broken"})

    assert whole.inventories(uuid) == ["processed", "processed", "failed"]


def test_m_09_the_table_is_used_by_default_and_nothing_is_stored_with_none(whole):
    kept, not_kept = whole.enroll("manageable"), whole.enroll("manageable")
    assert whole.conf.inventory.data_backend == "database"
    whole.inspect(kept, whole.machine()[1])

    with whole.option("inventory", "data_backend", "none"):
        assert whole.inspect(not_kept, whole.machine()[1])["provision_state"] == "manageable"

    assert [len(rows_of(whole, uuid)) for uuid in (kept, not_kept)] == [1, 0]
    assert whole.app.get(f"/v1/nodes/{kept}/inventory").status_int == 200
    assert whole.app.get(f"/v1/nodes/{not_kept}/inventory").status_int == 404


def test_m_10_inventories_go_with_their_node(whole):
    uuid, body = whole.enroll("manageable"), whole.machine()[1]
    whole.inspect(uuid, body)
    whole.inspect(uuid, {**body, "error": "broken"})
    node_id = whole.row(uuid).id
    assert len(rows_of(whole, uuid)) == 2

    assert whole.app.delete(f"/v1/nodes/{uuid}").status_int == 204

    with whole.db.reader() as conn:
        left = conn.scalar(sa.select(sa.func.count()).select_from(node_inventory).where(
            sa.or_(node_inventory.c.node_id == node_id, node_inventory.c.node_id.is_(None))))
    assert left == 0


def test_m_11_auto_discovered_is_a_column_that_only_discovery_sets(whole):
    assert isinstance(nodes.c.auto_discovered.type, sa.Boolean)
    by_hand, body = whole.enroll(), whole.machine()[1]

    with whole.option("auto_discovery", "enabled", True), whole.option("auto_discovery", "driver", "fake-hardware"):
        reply = whole.app.post_json("/v1/continue_inspection", body)
    discovered = reply.json["node"]["uuid"]
    whole.at_rest(discovered)

    assert [whole.row(uuid).auto_discovered for uuid in (by_hand, discovered)] == [False, True]
    # A key in the plugin data would be lost with the next inspection.
    whole.provision(discovered, "manage")
    assert whole.inspect(discovered, body)["auto_discovered"] is True


def test_m_11_clients_can_not_write_auto_discovered(whole):
    uuid = whole.enroll()

    created = whole.app.post_json("/v1/nodes", {"driver": "fake-hardware", "auto_discovered": True})
    changed = [whole.app.patch_json(f"/v1/nodes/{uuid}", [{"op": op, "path": "/auto_discovered", "value": True}])
               for op in ("add", "replace", "remove")]

    assert [reply.status_int for reply in (created, *changed)] == [400] * 4
    assert whole.show(uuid)["auto_discovered"] is False


def test_m_12_a_waiting_node_becomes_inspecting(whole):
    assert states.TRANSITIONS[states.INSPECTWAIT, "resume"].state == states.INSPECTING
    uuid, body = waiting(whole)

    with hooks.held(whole, lambda: whole.callback(uuid, body)) as reply:
        assert (reply.status_int, whole.show(uuid)["provision_state"]) == (200, "inspecting")
    assert whole.at_rest(uuid).provision_state == "manageable"
