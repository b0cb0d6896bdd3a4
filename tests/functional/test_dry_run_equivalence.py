"""For random rules, nodes and reports an inspection does what the dry run has said, twice in a row."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import strategies as st

from ironic_rules.db import node_sets
from ironic_rules.models.fields import values_of
from ironic_rules.models.nodes import NODE
from tests import strategies
from tests.functional import legacy
from tests.functional import whole as wholes
from tests.functional.installations import only_in_one_process
from tests.functional.whole import Whole
from tests.unit.rules import world

pytestmark = [pytest.mark.slow, only_in_one_process("its rows are compared")]

RULES = "/v1/inspection_rules"
MAC = "52:54:00:77:00:{:02x}"
#: Fields of which an inspection is not told by rules and hooks: its progress, and its failure.
PROGRESS = frozenset({
    "revision", "updated_at", "driver_internal_info", "inspection_finished_at", "inspection_started_at", "last_error",
    "error_template", "failed_hook", "failed_rule",
    "power_state", "provision_state", "provision_updated_at", "target_provision_state", "agent_token_hash",
    "reservation_resumptions", "reservation_purpose", "reservation_token", "reserved_at", "reservation"})
#: Further fields that change when an inspection fails.
FAILED = PROGRESS | {"maintenance", "maintenance_reason", "fault"}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Whole]:
    with wholes.running(tmp_path_factory.mktemp("equivalence"), "[inventory]\nmax_versions = 3\n") as found:
        yield found


VALUES = st.sampled_from([*[1, 2, 0.5, "x", "", True, None, ["a"], [], {"k": 1}, {"k": {"m": 2}},
                            "{inventory[hostname]}"] * 3, "{inventory[cpu][count]}", "{plugin_data[a]}",
                          "x{plugin_data[a]}", "{node[extra]}",
                          "{inventory[memory][nope]}", "{ports[0][address]}", "{item}"])
PATHS = st.sampled_from([*["/extra/a", "/extra/b/c/d", "/extra/l", "/properties/cpus", "/properties/vendor"] * 3,
                         "/extra/a/k", "/extra/l/-", "/extra", "/properties"])
LISTS = st.sampled_from(["/extra/l", "/extra/m/n", "/extra/m/o", "/extra/a"])
DATA_PATHS = st.sampled_from(["a", "l", "new/x", "a/k"])
TRAITS = st.sampled_from(["CUSTOM_A", "CUSTOM_B", "CUSTOM_C"])
NAMES = st.sampled_from(["a", "boot_mode", "z"])
PORTS = st.sampled_from([MAC.format(0), MAC.format(1), "{inventory[interfaces][0][mac_address]}"])
PORT_FIELDS = [{"path": path, "value": value} for path, value in (
    ("/extra/a", 3), ("/physical_network", "net-1"), ("/physical_network", None), ("/pxe_enabled", False),
    ("/local_link_connection", {"switch_id": "00:11:22:33:44:55"}), ("/extra/l", ["a"]), ("/pxe_enabled", "no"))]
LOOPS = st.sampled_from([*[None] * 8, "{inventory[disks]}", "{inventory[disks]}", "{plugin_data[l]}", [1, 2], []])


def operation(op: str, *, loops: bool = True, **args: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return a strategy for an action or a condition."""
    made = {"op": st.just(op), "args": st.fixed_dictionaries(args)}
    return st.fixed_dictionaries({**made, "loop": LOOPS} if loops else made).map(without_item)


def without_item(said: dict[str, Any]) -> dict[str, Any]:
    """Return an operation that reads an item only in a loop."""
    if said.get("loop") is not None or "{item}" not in str(said["args"]):
        return said
    return {**said, "args": {name: [1 if item == "{item}" else item for item in value] if isinstance(value, list)
                             else 1 if value == "{item}" else value for name, value in said["args"].items()}}


def text(value: Any) -> bool:
    return isinstance(value, str)


ACTIONS = st.one_of(
    operation("set-plugin-data", path=DATA_PATHS, value=VALUES),
    operation("extend-plugin-data", path=st.sampled_from(["l", "new/x", "new/y"]), value=VALUES, unique=st.booleans()),
    operation("unset-plugin-data", path=DATA_PATHS), operation("log", msg=st.just("{inventory[hostname]}")),
    *[operation("set-attribute", path=PATHS, value=VALUES)] * 3,
    operation("set-attribute", loops=False, path=st.sampled_from(["/description", "/resource_class", "/owner"]),
              value=st.sampled_from(["x", None, "{inventory[hostname]}"])),
    operation("set-attribute", loops=False, path=st.just("/boot_interface"), value=st.sampled_from(["fake", None])),
    operation("extend-attribute", path=LISTS, value=VALUES, unique=st.booleans()),
    operation("del-attribute", path=PATHS), operation("add-trait", name=TRAITS), operation("remove-trait", name=TRAITS),
    operation("set-capability", name=NAMES, value=st.sampled_from(["1", 2, "{inventory[cpu][count]}"])),
    operation("unset-capability", name=NAMES),
    *[st.builds(lambda port, said: {"op": "set-port-attribute", "args": {"port_id": port, **said}}, PORTS,
                st.sampled_from(PORT_FIELDS))] * 2,
    operation("extend-port-attribute", port_id=PORTS, path=st.just("/extra/l"), value=VALUES, unique=st.booleans()),
    operation("del-port-attribute", port_id=PORTS, path=st.sampled_from(["/extra/a", "/physical_network"])))
FAIL = operation("fail", loops=False, msg=st.just("no: {inventory[hostname]}"))
CONDITIONS = st.one_of(
    operation("eq", values=st.tuples(VALUES, VALUES).map(list)),
    operation("gt", values=st.tuples(VALUES, st.sampled_from([1, 16])).map(list)),
    operation("is-empty", value=VALUES.filter(text)), operation("is-true", value=VALUES.filter(text)),
    operation("contains", value=VALUES.filter(text), regex=st.sampled_from(["x", "^rack"])),
    operation("one-of", value=VALUES.filter(text), values=st.just([1, "x", "rack-1"])))


def inverted(condition: dict[str, Any], is_inverted: bool) -> dict[str, Any]:
    return {**condition, "op": "!" * is_inverted + condition["op"]}


def rule(phase: str, actions: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries({
        "phase": st.just(phase), "actions": st.lists(actions, min_size=1, max_size=3),
        "conditions": st.lists(st.builds(inverted, CONDITIONS, st.booleans()), max_size=2),
        "priority": st.integers(0, 3), "scope": st.sampled_from([None, None, "rack1"])})


STORED = st.lists(st.one_of(
    *[rule("main", ACTIONS)] * 4, rule("preprocess", ACTIONS), rule("main", st.one_of(*[ACTIONS] * 3, FAIL))),
    max_size=5)
EARLY = st.sampled_from([*[[]] * 4, [{"phase": "early", "actions": [
    {"op": "set-plugin-data", "args": ["a", "early {inventory[hostname]}"]}]}], [
    {"phase": "early", "actions": [{"op": "fail", "args": ["not x"]}],
     "conditions": [{"op": "eq", "args": ["{inventory[hostname]}", "x"]}, {"op": "gt", "args": [
         "{inventory[cpu][count]}", 16]}]}]])
LEGACY = st.lists(st.fixed_dictionaries({
    "conditions": st.lists(st.sampled_from([
        {"field": "memory_mb", "op": "ge", "value": 4096}, {"field": "inventory.disks[*].size", "op": "gt", "value": 5},
        {"field": "inventory.hostname", "op": "eq", "value": "rack-1", "invert": True},
        {"field": "node://extra.a", "op": "is-empty"}, {"field": "a", "op": "contains", "value": "x"}]), max_size=2),
    "actions": st.lists(st.sampled_from([
        *[{"action": "set-attribute", "path": "/extra/a", "value": "{data[memory_mb]}"},
          {"action": "set-attribute", "path": "/extra/small", "value": 1, "cleanup": 0},
          {"action": "append-attribute", "path": "/extra/l", "value": "legacy"},
          {"action": "set-capability", "name": "z", "value": "legacy"},
          {"action": "add-trait", "name": "CUSTOM_A"}] * 4,
        {"action": "set-attribute", "path": "/extra/n", "value": "{data[nope]}"},
        {"action": "fail", "message": "legacy", "maintenance": True}]), min_size=1, max_size=2)}), max_size=2)
NODES = st.fixed_dictionaries({
    "extra": st.sampled_from([{}, {"a": 1}, {"a": {"k": 5}, "l": ["a"]}, {"l": None}]),
    "properties": st.sampled_from([{}, {"capabilities": "a:9,z:1"}, {"cpus": 4}, {"capabilities": ""}]),
    "inspection_scope": st.sampled_from([None, "rack1"])})
REPORTS = st.fixed_dictionaries({
    "hostname": st.sampled_from(["rack-1", "x"]), "memory": st.sampled_from([1024, 8192]),
    "cpus": st.sampled_from([1, 16, 64]), "nics": st.integers(1, 3), "disks": st.integers(0, 2),
    "data": st.fixed_dictionaries({"a": st.sampled_from(["x", 1, {"k": 2}, None])}, optional={
        "l": st.sampled_from([[], [1, "x"], ["x"]])})})


def body_of(whole: Whole, said: dict[str, Any], serial: int) -> dict[str, Any]:
    """Return what a ramdisk sends; each machine has addresses of its own."""
    body = copy.deepcopy(whole.machine()[1])
    found = body["inventory"]
    found |= {"hostname": said["hostname"], "interfaces": [
        {"name": f"eth{number}", "mac_address": f"52:54:{serial >> 16:02x}:{serial >> 8 & 255:02x}:{serial & 255:02x}:"
         f"{number:02x}", "ipv4_address": f"192.0.2.{number + 1}"} for number in range(said["nics"])]}
    found["memory"] = {"physical_mb": said["memory"], "total": said["memory"] * 2**20}
    found["cpu"] |= {"count": said["cpus"]}
    found["disks"] = [{"name": f"/dev/sd{'ab'[number]}", "size": (number + 1) * 2**34, "rotational": False}
                      for number in range(said["disks"])]
    return {**body, **said["data"]}


def with_addresses(rules: list[Any], body: dict[str, Any]) -> list[Any]:
    """Return rules with the addresses of a machine for those that they have."""
    addresses = [nic["mac_address"] for nic in body["inventory"]["interfaces"]]
    found = copy.deepcopy(rules)
    for each in found:
        for action in each["actions"]:
            port = action["args"].get("port_id", "{") if isinstance(action["args"], dict) else "{"
            if "{" not in port:
                action["args"]["port_id"] = addresses[min(int(port[-1]), len(addresses) - 1)]
    return found


def state_of(whole: Whole, uuid: str) -> dict[str, Any]:
    """Return all that an inspection may change, as it is stored."""
    row = whole.row(uuid)
    with whole.db.reader() as conn:
        found = sorted(node_sets.list_traits(conn, [row.id])[row.id])
    ports = whole.app.get(f"/v1/ports?node_uuid={uuid}&detail=true").json["ports"]
    return {"node": values_of(NODE, row), "traits": found,
            "ports": {port["address"]: {name: value for name, value in port.items() if name not in (
                "uuid", "created_at", "updated_at", "links", "node_uuid")} for port in ports}}


def expected(before: dict[str, Any], shown: dict[str, Any]) -> dict[str, Any]:
    """Return the state with the answer of a dry run applied to it."""
    if shown["outcome"] != "finished":
        return before
    changed = shown["traits"]
    ports = {address: port for address, port in before["ports"].items() if address not in shown["ports_removed"]}
    for each in shown["ports"]:
        ports[each["address"]] = world.patched(ports[each["address"]], each["patch"])
    for created in shown["ports_created"]:
        ports[created["address"]] = created
    return {"node": world.patched(before["node"], shown["node"]["patch"]), "ports": ports,
            "traits": sorted({*before["traits"], *changed["added"]} - {*changed["removed"]})}


def assert_equal(found: dict[str, Any], wanted: dict[str, Any], ignored: frozenset[str]) -> None:
    for name in found["node"].keys() - ignored:
        assert found["node"][name] == wanted["node"][name], name
    assert found["traits"] == wanted["traits"]
    assert found["ports"].keys() == wanted["ports"].keys()
    for address, port in found["ports"].items():
        for name in port.keys() & wanted["ports"][address].keys():
            assert port[name] == wanted["ports"][address][name], (address, name)


@pytest.mark.parametrize("batch", strategies.batches(30, 500))
def test_an_inspection_does_what_the_dry_run_said(service: Whole, batch: tuple[int, int]) -> None:
    seen: Counter[str] = Counter()

    def test(rules: Any, old: Any, early: Any, node: Any, reports: Any) -> None:
        seen["examples"] += 1
        serial = batch[0] * strategies.BATCH * 8 + seen["examples"]
        first = body_of(service, reports[0], serial)
        reply = service.app.put_json(RULES, {"prune": True, "rules": with_addresses([*rules, *early], first)})
        if reply.status_int == 400:
            seen["refused rules"] += 1
            return
        assert reply.status_int == 200, reply.text
        assert service.app.delete(legacy.RULES).status_int == 204
        for said in old:
            legacy.rule(service, *said["actions"], conditions=said["conditions"])
        uuid = service.enroll("inspect wait", **node)
        for report in reports:
            body = body_of(service, report, serial)
            reply = service.app.post_json(f"{RULES}/dry_run", {"node": uuid, "report": body})
            assert reply.status_int == 200, reply.text
            shown = reply.json
            before = state_of(service, uuid)
            assert service.callback(uuid, body).status_int == (200 if shown["admitted"] else 404)
            service.at_rest(uuid)
            seen[shown["outcome"]] += 1
            after = state_of(service, uuid)
            state = after["node"]["provision_state"]
            assert state == {"finished": "manageable", "failed": "inspect failed", "refused": "inspect wait"}[
                shown["outcome"]], (shown["failure"], after["node"]["last_error"])
            assert_equal(after, expected(before, shown), PROGRESS if state == "manageable" else FAILED)
            if state == "manageable":
                seen["changed"] += bool(shown["node"]["patch"])
                stored = service.app.get(f"/v1/nodes/{uuid}/inventory").json["plugin_data"]
                sent = {name: value for name, value in body.items() if name not in ("inventory", "logs")}
                assert world.patched(sent, shown["plugin_data"]["patch"]) == stored
            elif state == "inspect failed":
                assert shown["failure"]["reason"] in after["node"]["last_error"]
            service.put(uuid, provision_state="inspect wait", maintenance=False)
        assert service.app.delete(f"/v1/nodes/{uuid}").status_int in (204, 409)

    strategies.check(batch, test, rules=STORED, old=LEGACY, early=EARLY, node=NODES,
                     reports=st.tuples(REPORTS, REPORTS))
    print(dict(seen))
    assert min(seen[name] for name in ("finished", "failed", "changed")) > batch[1] // 50
    assert seen["refused rules"] < batch[1] // 4
