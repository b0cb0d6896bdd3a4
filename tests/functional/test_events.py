"""Events of a running service: what is stored in the transactions of changes, and what of it receivers get."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
import pytest
import sqlalchemy as sa

from ironic_rules.db import outbox
from ironic_rules.db.tables import event_deliveries, events
from tests.functional.installations import only_in_one_process
from tests.functional.legacy import Machine
from tests.functional.processes import wait_for
from tests.functional.whole import OneProcess, running

pytestmark = only_in_one_process("events are read from its database")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OneProcess]:
    with running(tmp_path_factory.mktemp("events")) as service:
        outbox.want(service.db.engine, outbox.Wanted("info", False, "conductor-1"))
        yield service


@pytest.fixture
def whole(service: OneProcess) -> OneProcess:
    with service.db.writer() as conn:
        conn.execute(sa.delete(event_deliveries))
        conn.execute(sa.delete(events))
    return service


def stored(whole: OneProcess, *, without: str = "start") -> list[Any]:
    """Return the events in the outbox, without those of a status."""
    with whole.db.reader() as conn:
        rows = conn.execute(sa.select(events).order_by(events.c.id)).all()
    return [row for row in rows if not row.type.endswith(without)]


def payload(row: Any) -> dict[str, Any]:
    found: dict[str, Any] = orjson.loads(row.payload)
    return found


def test_an_inspection_is_reported_with_each_of_its_states(whole: OneProcess) -> None:
    machine = Machine(whole, name="e-1", driver_info={"ipmi_password": "hunter2"})
    machine.inspect()
    rows = [row for row in stored(whole, without="-") if row.subject == f"nodes/{machine.uuid}"]
    assert [row.type for row in rows if "provision_set" not in row.type] == [
        "baremetal.node.create.start", "baremetal.node.create.end", "baremetal.node.inspect.end"]
    states = [(payload(row)["previous_provision_state"], payload(row)["event"], payload(row)["provision_state"],
               row.type.rpartition(".")[2]) for row in rows if "provision_set" in row.type]
    assert states[-3:] == [("manageable", "inspect", "inspecting", "start"),
                           ("inspect wait", "resume", "inspecting", "success"),
                           ("inspecting", "done", "manageable", "end")] or states[-4:] == [
        ("manageable", "inspect", "inspecting", "start"), ("inspecting", "wait", "inspect wait", "success"),
        ("inspect wait", "resume", "inspecting", "success"), ("inspecting", "done", "manageable", "end")]
    created = payload(rows[0])
    assert created["driver_info"] == {"ipmi_password": "******"}
    assert not any("hunter2" in row.payload for row in rows)
    ended = payload(next(row for row in rows if row.type == "baremetal.node.inspect.end"))
    newest = whole.app.get(f"/v1/nodes/{machine.uuid}/inspections").json["inspections"][-1]
    assert (ended["inspection_uuid"], ended["outcome"], ended["error"]) == (newest["uuid"], newest["outcome"], None)
    assert {row.context["request_id"][:4] for row in rows} == {"req-"}


def test_a_change_that_is_rolled_back_has_no_event(whole: OneProcess) -> None:
    uuid = whole.enroll("manageable", name="e-2")
    with whole.db.writer() as conn:
        conn.execute(sa.delete(events))
    reply = whole.app.patch_json(f"/v1/nodes/{uuid}", [{"op": "replace", "path": "/driver", "value": "no-such"}])
    assert reply.status_int == 400
    assert stored(whole) == []


def test_each_kind_of_change_has_its_event(whole: OneProcess) -> None:
    app, uuid = whole.app, whole.enroll("manageable", name="e-3")
    with whole.db.writer() as conn:
        conn.execute(sa.delete(events))
    assert app.patch_json(f"/v1/nodes/{uuid}", [{"op": "add", "path": "/extra/a", "value": 1}]).status_int == 200
    assert app.put_json(f"/v1/nodes/{uuid}/maintenance", {"reason": "x"}).status_int == 202
    assert app.put(f"/v1/nodes/{uuid}/traits/CUSTOM_A").status_int == 204
    assert payload(stored(whole)[-1])["traits"] == ["CUSTOM_A"]
    assert app.delete(f"/v1/nodes/{uuid}/traits").status_int == 204
    port = app.post_json("/v1/ports", {"address": "52:54:00:ee:00:01", "node_uuid": uuid}).json["uuid"]
    assert app.delete(f"/v1/ports/{port}").status_int == 204
    assert app.post_json("/v1/chassis", {"description": "x"}).status_int == 201
    assert app.post_json("/v1/allocations", {"resource_class": "no-such", "name": "e-a"}).status_int == 201
    rule = app.post_json("/v1/inspection_rules", {"actions": [{"op": "log", "args": {"msg": "x"}}]}).json["uuid"]
    assert app.put_json(f"/v1/nodes/{uuid}/states/power", {"target": "power on"}).status_int == 202
    whole.at_rest(uuid)
    assert app.delete(f"/v1/inspection_rules/{rule}").status_int == 204
    assert app.delete(f"/v1/nodes/{uuid}").status_int == 204
    assert [row.type for row in stored(whole)] == [
        "baremetal.node.update.end", "baremetal.node.maintenance_set.end", "baremetal.node.update.end",
        "baremetal.node.update.end", "baremetal.port.create.end",
        "baremetal.port.delete.end", "baremetal.chassis.create.end", "baremetal.allocation.create.end",
        "baremetal.allocation.update.end", "baremetal.inspectionrules.update.success", "baremetal.node.power_set.end",
        "baremetal.inspectionrules.update.success", "baremetal.node.delete.end"]
    by_type = {row.type: payload(row) for row in stored(whole)}
    assert (by_type["baremetal.node.update.end"]["extra"], by_type["baremetal.node.update.end"]["traits"]) == (
        {"a": 1}, [])
    assert by_type["baremetal.node.power_set.end"]["to_power"] == "power on"
    assert by_type["baremetal.port.delete.end"]["node_uuid"] == uuid
    assert by_type["baremetal.allocation.update.end"]["state"] == "error"


def test_a_refused_report_and_changed_facts_are_reported(whole: OneProcess) -> None:
    machine = Machine(whole, name="e-4")
    machine.inspect(8192)
    machine.inspect(4096)
    body = machine.report()
    reply = whole.app.post_json("/v1/continue_inspection", body)
    assert reply.status_int == 404
    changed = [payload(row) for row in stored(whole) if row.type == "baremetal.node.facts_change.success"]
    assert changed[0]["changes"] == [{"fact": "memory_gib", "before": 8, "after": 4}]

    def refused() -> Any:
        return [payload(row) for row in stored(whole) if row.type == "baremetal.report.refuse.error"]

    found = wait_for("the refused report", refused)
    assert [node["node"] for node in found[0]["nodes"]] == [machine.uuid]
    assert (found[0]["reason"], found[0]["times"]) == ("wrong state", 1)
