"""``PATCH /v1/nodes/{node}``."""

from __future__ import annotations

import pytest

from ironic_rules.db import conductors
from ironic_rules.models.nodes import INTERFACES
from tests.functional.whole import fault
from tests.walking import walking

from .conftest import FAKE_HARDWARE, at

INSTANCE = "99999999-9999-4999-8999-999999999999"
OTHER = "88888888-8888-4888-8888-888888888888"
INTERFACE_VALUES = {f"{kind}_interface": FAKE_HARDWARE["fake-hardware"][kind]["default"] for kind in INTERFACES}


def add(path, value):
    return {"op": "add", "path": path, "value": value}


def replace(path, value):
    return {"op": "replace", "path": path, "value": value}


def remove(path):
    return {"op": "remove", "path": path}


@pytest.fixture
def patch(app):
    def send(node, *operations, minor=96, query=""):
        return app.patch_json(f"/v1/nodes/{node.uuid}{query}", list(operations), headers=at(minor), expect_errors=True)

    return send


@pytest.fixture
def node(make_node):
    return make_node(name="n", **INTERFACE_VALUES)


def test_a_patch_returns_the_node(patch, node):
    reply = patch(node, add("/extra/a", {"b": 1}), add("/driver_info/x~1y", 1), replace("/name", "m"))

    assert reply.status_int == 200
    assert (reply.json["extra"], reply.json["driver_info"], reply.json["name"]) == ({"a": {"b": 1}}, {"x/y": 1}, "m")
    assert reply.json["updated_at"] is not None


def test_a_patch_is_all_or_nothing(app, patch, node):
    assert patch(node, add("/extra/a", 1), remove("/extra/nosuch")).status_int == 400
    assert patch(node, add("/extra/a", 1), replace("/name", "bad name!")).status_int == 400
    assert app.get("/v1/nodes/n").json["extra"] == {}


@walking("operation, place", [
    (replace("/provision_state", "active"), "/provision_state"), (replace("/uuid", OTHER), "/uuid"),
    (add("/driver_internal_info/x", 1), "/driver_internal_info"), (add("/traits", ["CUSTOM_A"]), "traits"),
    (replace("/reservation", None), "/reservation"), (replace("/nosuch", 1), "/nosuch"), (remove("/driver"), "/driver"),
    (replace("/driver", None), "/driver"), (replace("/name", 5), "/name"), (replace("/extra", []), "/extra"),
    (replace("/maintenance", "perhaps"), "/maintenance"), (replace("/instance_uuid", "x"), "/instance_uuid"),
    (add("/driver_info", None) | {"path": "driver_info"}, "/0/path"), ({"op": "add", "path": "/name"}, "/0/value"),
    ({"op": "nosuch", "path": "/name"}, "/0/op"), (remove("/extra/nosuch"), "/extra/nosuch"), (add("/a/b", 1), "/a"),
    (replace("/maintenance_reason", "x"), "/maintenance_reason"), (replace("/shard", "x" * 256), "/shard"),
    (replace("/power_interface", "nosuch"), "nosuch"), (replace("/driver", "nosuch"), "nosuch"),
    (replace("/protected_reason", "x"), "/protected_reason"), (replace("/retired_reason", "x"), "/retired_reason"),
    ({"op": "copy", "from": "/driver_info/ipmi_password", "path": "/extra/x"}, "secrets"),
    ({"op": "move", "from": "/instance_info", "path": "/extra/x"}, "secrets"),
    ({"op": "test", "path": "/driver_info/ipmi_password", "value": "guess"}, "secrets"),
])
def test_a_bad_operation_is_refused_with_its_place(patch, node, operation, place):
    reply = patch(node, operation)

    assert reply.status_int == 400
    assert place in reply.fault["faultstring"]


def test_a_refused_field_names_what_can_be_patched(patch, node):
    text = patch(node, replace("/provision_state", "active")).fault["faultstring"]

    assert "Cannot patch /provision_state. Only the following can be updated: automated_clean, " in text


@walking("body", [{}, [1], [[]], "x", None, [{"op": "add"}]])
def test_a_body_that_is_no_patch_is_refused(app, node, body):
    assert app.patch_json(f"/v1/nodes/{node.uuid}", body, expect_errors=True).status_int == 400


def test_an_empty_patch_changes_nothing(patch, node):
    assert patch(node).status_int == 200


def test_removing_a_field_sets_its_default(patch, make_node):
    node = make_node(name="x", extra={"a": 1}, owner="me", conductor_group="", retired=True, retired_reason="old")

    shown = patch(node, remove("/extra"), remove("/owner"), remove("/name"), remove("/retired")).json

    assert [shown[name] for name in ("extra", "owner", "name", "retired", "retired_reason")] == [{}, None, None, False,
                                                                                                 None]


def test_clients_that_send_text_for_booleans_are_understood(patch, node):
    shown = patch(node, replace("/automated_clean", "False"), add("/retired", "True"),
                  add("/retired_reason", "worn")).json

    assert (shown["automated_clean"], shown["retired"], shown["retired_reason"]) == (False, True, "worn")


def test_true_in_a_json_field_is_not_one(patch, make_node):
    assert patch(make_node(extra={"a": 1}), replace("/extra/a", True)).json["extra"]["a"] is True


@pytest.mark.parametrize(("operation", "since"), [
    (replace("/name", "x"), 5), (replace("/owner", "x"), 50), (add("/network_data", {}), 66),
    (replace("/shard", "x"), 82),
    (remove("/description"), 51), (replace("/disable_power_off", True), 95),
])
def test_a_field_that_is_too_new_is_406(patch, node, operation, since):
    assert patch(node, operation, minor=since - 1).status_int == 406
    assert patch(node, operation, minor=since).status_int == 200


def test_inspection_scope_can_be_patched_in_every_version(patch, node):
    assert patch(node, add("/inspection_scope", "lab"), minor=1).json["inspection_scope"] == "lab"


def test_instance_uuid_is_replaced_when_null_and_cleared(patch, node):
    assert patch(node, replace("/instance_uuid", INSTANCE)).json["instance_uuid"] == INSTANCE
    assert patch(node, replace("/instance_uuid", INSTANCE)).status_int == 200
    assert patch(node, replace("/instance_uuid", None)).json["instance_uuid"] is None
    assert patch(node, remove("/instance_uuid")).status_int == 200


def test_a_node_that_has_an_instance_takes_no_other(patch, make_node):
    reply = patch(make_node(instance_uuid=INSTANCE), replace("/instance_uuid", OTHER))

    assert reply.status_int == 409
    assert INSTANCE in reply.fault["faultstring"]


def test_an_instance_has_one_node_only(patch, make_node, node):
    make_node(instance_uuid=INSTANCE)

    reply = patch(node, replace("/instance_uuid", INSTANCE))

    assert reply.status_int == 409
    assert node.uuid in reply.fault["faultstring"]


def test_a_name_that_is_taken_is_a_conflict(patch, make_node, node):
    make_node(name="taken")

    assert patch(node, replace("/name", "taken")).status_int == 409


def test_a_locked_node_is_a_conflict_that_names_the_holder(patch, make_node):
    reply = patch(make_node(reservation="conductor-7"), add("/extra/a", 1))

    assert reply.status_int == 409
    assert "conductor-7" in reply.fault["faultstring"]


@pytest.mark.parametrize(("state", "target", "status"), [
    ("deploying", "active", 409), ("wait call-back", "active", 409), ("cleaning", "available", 409),
    ("inspecting", "manageable", 409),
    ("inspect wait", "manageable", 200), ("inspect failed", "manageable", 200), ("deploy failed", "active", 200),
    ("active", None, 200), ("available", None, 200),
])
def test_a_node_on_its_way_to_another_state_can_not_be_changed(patch, make_node, state, target, status):
    node = make_node(provision_state=state, target_provision_state=target)

    assert patch(node, add("/extra/a", 1)).status_int == status


def test_a_node_in_maintenance_may_lose_its_instance_in_every_state(patch, make_node):
    node = make_node(provision_state="deploying", target_provision_state="active", maintenance=True,
                     instance_uuid=INSTANCE)

    assert patch(node, remove("/instance_uuid"), add("/extra/a", 1)).status_int == 409
    assert patch(node, remove("/instance_uuid")).status_int == 200


def test_maintenance_that_ends_takes_its_reason_and_fault_along(app, patch, make_node):
    shown = patch(make_node(maintenance=True, maintenance_reason="x", fault="power failure"),
                  replace("/maintenance", False)).json

    assert (shown["maintenance"], shown["maintenance_reason"], shown["fault"]) == (False, None, None)


@pytest.mark.parametrize(("operation", "values"), [
    (replace("/power_interface", "fake"), {"provision_state": "active", "power_interface": "old"}),
    (replace("/driver", "fake-hardware"), {"provision_state": "active", "driver": "old"}),
    (replace("/resource_class", "x"), {"provision_state": "active", "resource_class": "y"}),
    (replace("/protected", True), {"provision_state": "manageable"}),
    (replace("/retired", True), {"provision_state": "available"}),
    (replace("/driver", "fake-hardware"), {"driver": "old", "console_enabled": True}),
    (replace("/console_interface", "fake"), {"console_interface": "old", "console_enabled": True}),
])
def test_what_the_state_forbids_is_a_conflict(patch, make_node, operation, values):
    assert patch(make_node(**values), operation).status_int == 409


def test_a_console_that_nothing_can_stop_keeps_no_interface(patch, make_node):
    node = make_node(**INTERFACE_VALUES | {"console_interface": "no-console"}, console_enabled=True)

    assert patch(node, replace("/console_interface", "fake")).status_int == 200


@pytest.mark.parametrize(("maintenance", "status"), [(True, 200), (False, 409)])
def test_interfaces_of_a_deployed_node_can_be_changed_in_maintenance_only(patch, make_node, maintenance, status):
    node = make_node(**INTERFACE_VALUES, provision_state="active", maintenance=maintenance)

    assert patch(node, replace("/inspect_interface", "no-inspect")).status_int == status


@pytest.mark.parametrize("minor", [31, 96])
@pytest.mark.parametrize(("operation", "field"), [
    (replace("/power_interface", "ipmitool"), "power_interface"), (remove("/boot_interface"), "boot_interface"),
    (replace("/driver", "ipmi"), "driver"),
])
def test_who_waits_for_a_ramdisk_keeps_the_interfaces_that_can_end_it(patch, make_node, operation, field, minor):
    values = INTERFACE_VALUES | {"boot_interface": "old", "provision_state": "inspect wait"}
    reply = patch(make_node(**values, target_provision_state="manageable"), operation, minor=minor)

    assert reply.status_int == 409
    assert f"cannot have {field} updated unless it is in one of the states enroll, inspecting, manageable, " \
           'available, or in maintenance. Its state is "inspect wait"' in reply.fault["faultstring"]


def test_who_waits_for_a_ramdisk_can_be_changed_otherwise(patch, make_node):
    waiting = {"provision_state": "inspect wait", "target_provision_state": "manageable", **INTERFACE_VALUES}

    # A value that is unchanged is not a change.
    assert patch(make_node(**waiting), replace("/resource_class", "x"),
                 replace("/inspect_interface", INTERFACE_VALUES["inspect_interface"])).status_int == 200
    assert patch(make_node(**waiting, maintenance=True), replace("/inspect_interface", "no-inspect")).status_int == 200


def test_removing_an_interface_sets_the_default(patch, node):
    assert patch(node, replace("/inspect_interface", "no-inspect")).json["inspect_interface"] == "no-inspect"
    assert patch(node, remove("/inspect_interface")).json["inspect_interface"] == "agent"


@pytest.fixture
def other_driver(db):
    """A second hardware type, whose power interface has another name."""
    offered = {**FAKE_HARDWARE["fake-hardware"], "power": {"enabled": ["special"], "default": "special"}}
    with db.writer() as conn:
        conductors.register(conn, "conductor-2", "", {"other": offered}, "instance-2")


def test_a_new_driver_keeps_the_interfaces_and_refuses_those_it_has_not(patch, node, other_driver):
    reply = patch(node, replace("/driver", "other"))

    assert reply.status_int == 400
    assert "special" in reply.fault["faultstring"]
    assert patch(node, replace("/driver", "other"), replace("/power_interface", "special")).json["driver"] == "other"


def test_reset_interfaces_takes_the_new_drivers_defaults(patch, node, other_driver):
    shown = patch(node, replace("/driver", "other"), replace("/inspect_interface", "no-inspect"),
                  query="?reset_interfaces=true").json

    assert (shown["power_interface"], shown["inspect_interface"]) == ("special", "no-inspect")


def test_reset_interfaces_goes_with_a_driver_only_and_needs_1_45(patch, node):
    assert patch(node, replace("/name", "x"), query="?reset_interfaces=true").status_int == 400
    assert patch(node, replace("/driver", "fake-hardware"), query="?reset_interfaces=true", minor=44).status_int == 406


def test_parent_node_is_given_by_name_and_stored_by_uuid(patch, make_node, node):
    parent = make_node(name="parent")

    assert patch(node, replace("/parent_node", "parent")).json["parent_node"] == parent.uuid
    assert patch(node, replace("/parent_node", "nosuch")).status_int == 400


def test_no_node_is_above_itself_or_of_another_owner_and_none_is_deleted_before_its_children(
        app, patch, make_node, node):
    above = make_node(name="above", parent_node=node.uuid)
    make_node(name="top", parent_node=above.uuid)
    make_node(name="others", owner="p")

    for parent in (node.uuid, "above", "top"):
        refused = patch(node, replace("/parent_node", parent))
        assert (refused.status_int, "/parent_node" in refused.text) == (400, True)
    assert "could not be found" in patch(node, replace("/parent_node", "others")).text
    assert app.delete(f"/v1/nodes/{node.uuid}", expect_errors=True).status_int == 409
    app.delete("/v1/nodes/top")
    app.put_json("/v1/nodes/above/maintenance", {})
    patch(node, replace("/parent_node", None))
    for name in ("above", node.uuid):
        app.delete(f"/v1/nodes/{name}")


def test_a_group_without_conductors_is_named_with_those_that_have_some(db, patch, node):
    reply = patch(node, replace("/conductor_group", "Rack-9"))
    db.write(lambda conn: conductors.register(conn, "conductor-2", "rack-1", {}, "run"))
    with_others = patch(node, replace("/conductor_group", "rack-9"))
    without_driver = patch(node, replace("/conductor_group", "rack-1"))

    assert (reply.status_int, with_others.status_int, without_driver.status_int) == (400, 400, 400)
    assert fault(reply) == ("No conductor in the group rack-9 is alive that could support the hardware type "
                            "fake-hardware; conductors are alive without a group.")
    assert fault(with_others).endswith("conductors are alive without a group, in the group rack-1.")
    assert fault(without_driver) == ("No conductor in the group rack-1 supports the hardware type fake-hardware; "
                                     "supported are none.")
