"""Dry runs of many nodes say the same as the dry run of each one, which explains every step."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import strategies as st

from ironic_rules.conductor import operations
from ironic_rules.db import inventory, nodes, ports
from ironic_rules.inspection import trial_machines
from ironic_rules.inspection.hooks.base import InspectionHook
from tests import strategies
from tests.functional import test_dry_run_equivalence as equivalence
from tests.functional import whole as wholes
from tests.functional.installations import only_in_one_process
from tests.functional.processes import wait_for
from tests.functional.whole import OneProcess

pytestmark = only_in_one_process("the conductor's parts are looked at")

RULES = "/v1/inspection_rules"
PASSWORD = "hunter22-of-a-node"
#: Secrets that both must hide: a rule's password, also where it was copied, overwritten or written by a sensitive rule.
SECRETS = st.sampled_from([
    {"op": "set-attribute", "args": [path, value]} for path in (
        "/driver_info/redfish_password", "/extra/copy", "/extra/deep/er", "/properties/vendor")
    for value in ("pa55-word", "of pa55-word too", PASSWORD, "{inventory[hostname]}")] + [
    {"op": "set-plugin-data", "args": ["api_key", "pa55-word"]},
    {"op": "set-plugin-data", "args": ["a", {"token": "pa55-word"}]},
    {"op": "set-plugin-data", "args": ["a", "x"]},
    {"op": "api-call", "args": {"url": "http://192.0.2.1/pa55-word"}}])
RULE = st.one_of(
    *[equivalence.rule("main", equivalence.ACTIONS)] * 2, equivalence.rule("preprocess", equivalence.ACTIONS),
    equivalence.rule("main", st.one_of(SECRETS, SECRETS, equivalence.ACTIONS, equivalence.FAIL)),
    st.builds(lambda rule: {**rule, "sensitive": True}, equivalence.rule("main", SECRETS)))


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OneProcess]:
    text = "api_call_allowed_hosts = 192.0.2.1\n[inspector]\nhook_timeout = 2\n"
    with wholes.running(tmp_path_factory.mktemp("bulk"), text) as found:
        yield found


def stored(service: OneProcess, serial: int, report: dict[str, Any], **fields: Any) -> str:
    """Store a node, one port and its last inspection without running it; return the UUID of the node."""
    body = equivalence.body_of(service, report, serial)
    found = body.pop("inventory")

    def write(conn: sa.Connection) -> str:
        row = nodes.create(conn, {
            "driver": "fake-hardware", "inspect_interface": "agent", "provision_state": "manageable",
            "driver_info": {"ipmi_password": PASSWORD, "ipmi_address": "192.0.2.3"}, **fields})
        ports.create(conn, {"node_id": row.id, "address": found["interfaces"][0]["mac_address"], "pxe_enabled": True})
        received = inventory.receive(conn, row.id, found, body, None)
        inventory.finish(conn, received, body, inventory.PROCESSED)
        return row.uuid

    return service.db.write(write)


REPORT = {"hostname": "rack-1", "memory": 8192, "cpus": 16, "nics": 2, "disks": 1, "data": {"a": "x"}}


def results(service: OneProcess, body: dict[str, Any]) -> dict[str, Any]:
    """Run the dry run of many nodes; return the items of the operation, by their nodes."""
    begun = service.app.post_json(f"{RULES}/dry_run", body)
    assert begun.status_int == 202, begun.text

    def ended() -> Any:
        operations.work(service.conductor)
        shown = service.app.get(f"/v1/operations/{begun.json['uuid']}").json
        return shown if shown["status"] != "running" else None

    wait_for("the end of the operation", ended)
    return {one["node"]: one for one in
            service.app.get(f"/v1/operations/{begun.json['uuid']}/nodes").json["nodes"]}


@pytest.mark.slow
@pytest.mark.parametrize("batch", strategies.batches(25))
def test_many_nodes_get_what_each_of_them_gets(service: OneProcess, batch: tuple[int, int]) -> None:
    owner = f"equal {batch[0]}"
    known = [stored(service, batch[0] * 10 + number, {**REPORT, "hostname": name, "memory": memory}, owner=owner,
                    **more) for number, (name, memory, more) in enumerate((
                 ("rack-1", 8192, {}), ("x", 1024, {"extra": {"a": {"k": 5}, "l": ["a"]}}),
                 ("x", 8192, {"inspection_scope": "rack1", "extra": {"copy": PASSWORD}})))]
    seen: Counter[str] = Counter()

    def test(rules: Any) -> None:
        rules = [{**rule, "uuid": f"00000000-0000-4000-8000-{number:012}"} for number, rule in enumerate(rules)]
        single = [service.app.post_json(f"{RULES}/dry_run", {"node": uuid, "rules": rules}) for uuid in known]
        if single[0].status_int == 400:
            seen["refused"] += 1
            return
        many = results(service, {"nodes": {"owner": owner}, "rules": rules})
        for uuid, reply in zip(known, single, strict=True):
            found, wanted = many[uuid]["result"], reply.json
            for name in found.keys() - {"plugin_data"}:
                assert found[name] == wanted[name], name
            seen[found["outcome"]] += 1
            seen["masked"] += "******" in str(found)
            assert "hunter22" not in str(found)

    strategies.check(batch, test, rules=st.lists(RULE, min_size=1, max_size=5))
    print(dict(seen))
    assert min(seen[name] for name in ("finished", "failed", "masked")) > batch[1] // 20


def test_the_number_of_statements_does_not_depend_on_the_number_of_nodes(service: OneProcess) -> None:
    statements: list[str] = []

    def count(conn: Any, cursor: Any, statement: str, *more: Any) -> None:
        statements.append(statement.split(" FROM ")[0])

    numbers = []
    sets = {"op": "set-attribute", "args": ["/extra/a", 1]}
    body = {"rules": [{"actions": [sets]}, {"actions": [sets], "conditions": [
        {"op": "eq", "args": ["{previous[hostname]}", "rack-1"]}]}]}
    for owner, many in (("few", 2), ("many", 40)):
        for number in range(many):
            stored(service, 70_000 + many * 100 + number, REPORT, owner=owner)
        sa.event.listen(service.db.engine, "before_cursor_execute", count)
        try:
            found = results(service, {"nodes": {"owner": owner}, **body})
        finally:
            sa.event.remove(service.db.engine, "before_cursor_execute", count)
        assert [one["status"] for one in found.values()] == ["changed"] * many
        numbers.append(len(statements))
        statements.clear()
    assert numbers[0] == numbers[1]


def test_large_reports_are_read_a_few_at_a_time_and_each_is_tried(
        service: OneProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        stored(service, 80_000 + number, REPORT, owner="large")
    parts = []
    original = trial_machines.stored_machines
    monkeypatch.setattr(trial_machines, "_MOST_CHARACTERS", 3000)
    monkeypatch.setattr(trial_machines, "stored_machines", lambda *given: parts.append(1) or original(*given))
    found = results(service, {"nodes": {"owner": "large"}, "rules": [
        {"actions": [{"op": "set-attribute", "args": ["/extra/a", 1]}]}]})
    assert [one["status"] for one in found.values()] == ["changed"] * 5
    assert len(parts) > 1


def test_a_hook_that_does_not_end_fails_its_node_only(service: OneProcess) -> None:
    uuids = [stored(service, 90_000 + number, {**REPORT, "hostname": name}, owner="hanging")
             for number, name in enumerate(("one", "hangs", "three"))]
    gate = threading.Event()

    class Hangs(InspectionHook):
        def __call__(self, task: Any, inventory: dict[str, Any], plugin_data: dict[str, Any]) -> None:
            if inventory["hostname"] == "hangs":
                gate.wait()

    with service.with_hooks(Hangs()):
        found = results(service, {"nodes": {"owner": "hanging"}, "rules": [
            {"actions": [{"op": "set-attribute", "args": ["/extra/a", 1]}]}]})
        gate.set()
    assert [found[uuid]["status"] for uuid in uuids] == ["changed", "failed", "changed"]
    assert "[inspector]hook_timeout" in found[uuids[1]]["error"]
