"""The history of a node's inspections."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.functional import legacy
from tests.functional import whole as wholes
from tests.functional.whole import Whole

RULES = "/v1/inspection_rules"
SECRET = "Xyzzy-16180339"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Whole]:
    text = "[inspection_rules]\nmask_secrets = never\n[inspection_history]\nmax_entries = 3\n"
    with wholes.running(tmp_path_factory.mktemp("history"), text) as found:
        yield found


@pytest.fixture
def whole(service: Whole) -> Iterator[Whole]:
    yield service
    assert service.app.delete(RULES).status_int == 204


def rule(whole: Whole, *actions: object, **fields: object) -> str:
    reply = whole.app.post_json(RULES, {"actions": list(actions), **fields})
    assert reply.status_int == 201, reply.text
    return str(reply.json["uuid"])


def set_extra(key: str, value: object) -> dict[str, object]:
    return {"op": "set-attribute", "args": [f"/extra/{key}", value]}


def test_an_inspection_leaves_an_entry_with_what_each_rule_changed(whole: Whole) -> None:
    first = rule(whole, set_extra("a", 1), set_extra("a", 2), {"op": "add-trait", "args": ["CUSTOM_A"]}, priority=5)
    port = rule(whole, {"op": "set-port-attribute", "args": ["{inventory[interfaces][0][mac_address]}", "/extra/p", 1]},
                priority=4)
    rule(whole, set_extra("never", 1), conditions=[{"op": "is-true", "args": [False]}])
    node = whole.enroll("manageable")
    mac, body = whole.machine()
    whole.inspect(node, body)
    listed = whole.app.get(f"/v1/nodes/{node}/inspections").json["inspections"]
    assert [(each["outcome"], each["kind"]) for each in listed] == [("finished", "ramdisk")]
    shown = whole.app.get(f"/v1/nodes/{node}/inspections/{listed[0]['uuid']}").json
    of_node = [{"op": "add", "path": "/extra/a", "value": 2}, {"op": "add", "path": "/traits/-", "value": "CUSTOM_A"}]
    of_port = [{"op": "add", "path": "/extra/p", "value": 1}]
    assert shown["rules"] == [
        {"rule": first, "sensitive": False, "changes": {"node": of_node}},
        {"rule": port, "sensitive": False, "changes": {"ports": {mac: of_port}}}]
    assert set(shown["seconds"]) == {
        "wait", "lookup", "queue", "receive", "hooks", "rules", "finish", "commit"}
    assert (shown["failure"], shown["source"], shown["conductor"]) == (None, "192.0.2.77", "conductor-1")
    event = whole.app.get(f"/v1/nodes/{node}/history?detail=true").json["history"][-1]
    assert event["inspection"] == shown["uuid"]
    tried = whole.app.post_json(f"{RULES}/dry_run", {"node": node, "version": shown["inventory_id"]})
    assert tried.json["outcome"] == "finished"


def test_a_failed_inspection_tells_the_rule_and_what_the_others_would_have_changed(whole: Whole) -> None:
    rule(whole, set_extra("a", 1), {"op": "add-trait", "args": ["CUSTOM_LOST"]}, priority=2)
    uuid = rule(whole, {"op": "log", "args": ["x"]}, {"op": "fail", "args": ["no"]})
    node = whole.enroll("manageable")
    whole.inspect(node, whole.machine()[1])
    shown, = whole.app.get(f"/v1/nodes/{node}/inspections?detail=true").json["inspections"]
    assert (shown["outcome"], shown["failure"]) == (
        "failed", {"rule": uuid, "pointer": "/actions/1", "reason": "no (IR-1027)"})
    assert [change["value"] for change in shown["rules"][0]["changes"]["node"]] == [1, "CUSTOM_LOST"]
    # The trait is not saved: one that the node gets later is not from this inspection.
    whole.app.put_json(f"/v1/nodes/{node}/traits", {"traits": ["CUSTOM_LOST"]})
    told, = whole.app.get(f"/v1/nodes/{node}/trait_origins").json["trait_origins"]
    assert (told["trait"], told["rule"]) == ("CUSTOM_LOST", None)
    assert "a" not in whole.app.get(f"/v1/nodes/{node}").json["extra"]


def test_an_aborted_inspection_and_one_out_of_band_are_entries_too(whole: Whole) -> None:
    node = whole.enroll("manageable")
    whole.provision(node, "inspect")
    whole.provision(node, "abort")
    shown, = whole.app.get(f"/v1/nodes/{node}/inspections?detail=true").json["inspections"]
    assert (shown["outcome"], shown["failure"]) == (
        "aborted", {"reason": "Inspection was aborted by request. (IR-2083)"})


def test_as_many_are_kept_as_configured(whole: Whole) -> None:
    node = whole.enroll("manageable")
    _, body = whole.machine()
    for _ in range(4):
        whole.inspect(node, body)
    listed = whole.app.get(f"/v1/nodes/{node}/inspections").json["inspections"]
    assert len(listed) == 3
    assert whole.app.get(f"/v1/nodes/{node}/inspections?limit=2").json["next"]
    assert whole.app.get(f"/v1/nodes/{whole.enroll()}/inspections/{listed[0]['uuid']}").status_int == 404


def test_no_secret_is_in_the_history(whole: Whole) -> None:
    rule(whole, set_extra("x", "{node[driver_info][ipmi_password]}"),
         {"op": "set-attribute", "args": ["/driver_info/ipmi_password", SECRET + "2"]},
         {"op": "log", "args": ["now {node[extra]}"]}, priority=5)
    sealed = rule(whole, set_extra("sealed", "plugh-value"), sensitive=True, priority=4)
    rule(whole, set_extra("copy", "{node[extra][sealed]}"), priority=3)
    node = whole.enroll("manageable", driver_info={"ipmi_password": SECRET})
    whole.inspect(node, {**whole.machine()[1], "site_token": SECRET + "3"})
    shown = whole.app.get(f"/v1/nodes/{node}/inspections?detail=true").json["inspections"]
    assert SECRET not in str(shown)
    assert "plugh" not in str(shown)
    assert shown[0]["rules"][1] == {"rule": sealed, "sensitive": True, "changes": None}
    assert shown[0]["rules"][2]["changes"]["node"] == [{"op": "add", "path": "/extra/copy", "value": "******"}]


def test_traits_tell_which_rule_gave_them(whole: Whole) -> None:
    def add(*traits: str) -> list[dict[str, object]]:
        return [{"op": "add-trait", "args": [trait]} for trait in traits]

    node = whole.enroll("manageable")
    whole.app.put_json(f"/v1/nodes/{node}/traits", {"traits": ["CUSTOM_B", "CUSTOM_Z"]})
    one = rule(whole, *add("CUSTOM_C", "CUSTOM_A"), priority=5)
    two = rule(whole, *add("CUSTOM_A", "CUSTOM_B", "CUSTOM_D"), priority=4)
    rule(whole, *add("CUSTOM_S"), sensitive=True)
    body = whole.machine()[1]
    whole.inspect(node, body)
    entry, = whole.app.get(f"/v1/nodes/{node}/inspections?detail=true").json["inspections"]
    # One operation for each trait, though the list is sorted.
    assert [found["changes"] and [tuple(each.values()) for each in found["changes"]["node"]]
            for found in entry["rules"]] == [
        [("add", "/traits/0", "CUSTOM_A"), ("add", "/traits/2", "CUSTOM_C")], [("add", "/traits/3", "CUSTOM_D")], None]

    # Another inspection gives nothing new.
    whole.inspect(node, {**body, "again": True})
    told = whole.app.get(f"/v1/nodes/{node}/trait_origins").json["trait_origins"]
    assert {each["trait"]: each["rule"] for each in told} == {
        "CUSTOM_A": one, "CUSTOM_B": None, "CUSTOM_C": one, "CUSTOM_D": two, "CUSTOM_S": None, "CUSTOM_Z": None}
    assert {each["inspection"] for each in told} == {None, entry["uuid"]}
    assert told[0]["given_at"] == entry["created_at"]


def test_what_legacy_rules_changed_is_told_too(whole: Whole) -> None:
    machine = legacy.Machine(whole)
    uuid = legacy.rule(
        whole, legacy.sets("/extra/a", "{data[memory_mb]}"), legacy.sets("driver_info/ipmi_password", SECRET),
        {"action": "add-trait", "name": "CUSTOM_L"}, description="from Inspector")
    legacy.rule(whole, legacy.sets("/extra/never"), conditions=legacy.at_least(10**9))
    machine.inspect(8192)
    shown, = whole.app.get(f"/v1/nodes/{machine.uuid}/inspections?detail=true").json["inspections"]
    assert shown["rules"] == [{"rule": uuid, "sensitive": False, "changes": {"node": [
        {"op": "add", "path": "/extra/a", "value": "8192"},
        {"op": "add", "path": "/driver_info/ipmi_password", "value": "******"},
        {"op": "add", "path": "/traits/-", "value": "CUSTOM_L"}]}}]

    # A later rule fails: what this one wrote is not saved, and not told.
    failing = legacy.rule(whole, {"action": "fail", "message": "not this one"})
    node = machine.inspect(16384)
    assert node["extra"]["a"] == "8192"
    assert f"Legacy rule {failing} failed at /actions/0: not this one" in node["last_error"]
    last = whole.app.get(f"/v1/nodes/{machine.uuid}/inspections?detail=true").json["inspections"][-1]
    assert (last["failure"]["rule"], [rule["changes"] for rule in last["rules"]]) == (failing, [{}, {}])
    assert whole.app.delete(legacy.RULES).status_int == 204
