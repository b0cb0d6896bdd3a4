"""Versions of a node's inventory, how they differ, and the previous one in rules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ironic_rules.db import inventory
from tests.functional import whole as wholes
from tests.functional.whole import Whole

RULES = "/v1/inspection_rules"
SECRET = "Xyzzy-16180339"
#: Later reports have fewer disks than earlier ones.
FEWER = {"op": "lt", "args": {"values": ["{inventory[disks]|count}", "{previous[disks]|count}"]}}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Whole]:
    with wholes.running(tmp_path_factory.mktemp("versions"), "[inventory]\nmax_versions = 4\n") as found:
        yield found


@pytest.fixture
def whole(service: Whole) -> Iterator[Whole]:
    yield service
    assert service.app.delete(RULES).status_int == 204


def with_disks(body: dict[str, Any], *serials: str, password: str = SECRET) -> dict[str, Any]:
    disks = [{"name": f"/dev/sd{'abc'[place]}", "serial": serial, "size": 2**40}
             for place, serial in enumerate(serials)]
    return {**body, "inventory": {**body["inventory"], "disks": disks, "bmc_password": password}}


def inspected(whole: Whole, *reports: tuple[str, ...]) -> tuple[str, dict[str, Any]]:
    """Return a node that has sent these disks, and its report."""
    node = whole.enroll("manageable")
    _, body = whole.machine()
    for serials in reports:
        whole.inspect(node, with_disks(body, *serials, password=f"{SECRET}{len(serials)}"))
    return node, body


def test_versions_are_listed_and_shown(whole: Whole) -> None:
    node, body = inspected(whole, ("A", "B"))
    whole.inspect(node, {**body, "error": "no"})
    listed = whole.app.get(f"/v1/nodes/{node}/inventory/versions").json["versions"]
    assert [each["status"] for each in listed] == ["processed", "failed"]
    first, last = (each["version"] for each in listed)
    assert listed[0].keys() == {"version", "status", "created_at", "updated_at", "request_id"}
    entries = whole.app.get(f"/v1/nodes/{node}/inspections?detail=true").json["inspections"]
    assert [entry["inventory_id"] for entry in entries] == [first, last]

    page = whole.app.get(f"/v1/nodes/{node}/inventory/versions?limit=1&fields=version").json
    assert page["versions"] == [{"version": first}]
    assert page["next"].endswith(f"limit=1&marker={first}")
    rest = whole.app.get(f"/v1/nodes/{node}/inventory/versions?marker={first}").json["versions"]
    assert rest == listed[1:]
    turned = whole.app.get(f"/v1/nodes/{node}/inventory/versions?sort_key=status&sort_dir=asc&limit=1").json["versions"]
    assert turned == listed[1:]

    shown = [whole.app.get(f"/v1/nodes/{node}/inventory?version={each}").json for each in (first, last)]
    assert [each["status"] for each in shown] == ["processed", "failed"]
    assert [len(each["inventory"]["disks"]) for each in shown] == [2, len(body["inventory"].get("disks", []))]
    assert shown[0]["inventory"]["bmc_password"] == "******"


def test_differences_of_the_last_two_successful_ones_or_of_any_two(whole: Whole) -> None:
    node, body = inspected(whole, ("A", "B"), ("B", "C", "D"), ("B",))
    whole.inspect(node, {**body, "error": "no"})
    first, second, third, failed = (
        each["version"] for each in whole.app.get(f"/v1/nodes/{node}/inventory/versions").json["versions"])
    found = whole.app.get(f"/v1/nodes/{node}/inventory/diff")
    assert (found.json["from"]["version"], found.json["to"]["version"]) == (second, third)
    assert [disk["serial"] for disk in found.json["disks"]["removed"]] == ["C", "D"]
    assert found.json["disks"]["added"] == found.json["disks"]["changed"] == []
    assert [operation["path"] for operation in found.json["patch"]] == ["/disks/2", "/disks/1"]
    assert SECRET not in found.text

    found = whole.app.get(f"/v1/nodes/{node}/inventory/diff?from={first}&to={second}").json
    assert [disk["serial"] for disk in found["disks"]["added"]] == ["C", "D"]
    assert found["disks"]["changed"] == [
        {"identity": {"serial": "B"}, "changes": {"name": {"before": "/dev/sdb", "after": "/dev/sda"}}}]
    assert whole.app.get(f"/v1/nodes/{node}/inventory/diff?from={failed}&to={failed}").json["patch"] == []
    assert whole.app.get(f"/v1/nodes/{node}/inventory/diff?from={third}&to={first}").json["to"]["version"] == first


def test_bad_requests(whole: Whole) -> None:
    node, _ = inspected(whole, ("A",))
    other, _ = inspected(whole, ("A",))
    version = whole.app.get(f"/v1/nodes/{other}/inventory/versions").json["versions"][0]["version"]
    base = f"/v1/nodes/{node}/inventory"
    for path, status, text in (
            ("?version=0", 400, "must be positive"), ("?version=x", 400, "must be an integer"),
            ("?version=1&status=failed", 400, "cannot be used in one request"),
            (f"?version={version}", 404, f"no inspection inventory version {version}"),
            ("?version=999999999999999999", 404, "version 999999999999999999"),
            ("/diff", 404, "of a successful inspection before version"),
            (f"/diff?from={version}", 404, f"version {version}"), ("/diff?since=1", 400, "since"),
            ("/diff?from=1&from=2", 400, "more than once"), ("/versions?marker=999999999999999999", 404, "arker"),
            ("/versions?sort_key=inventory_data", 400, "sort_key"), ("/versions?fields=data", 400, "unknown field")):
        reply = whole.app.get(base + path, expect_errors=True)
        assert (reply.status_int, text in reply.text) == (status, True), reply.text
    old = whole.app.get(f"{base}/versions", headers={"X-OpenStack-Ironic-API-Version": "1.95"}, expect_errors=True)
    assert old.status_int == 404
    nothing = whole.enroll("manageable")
    assert whole.app.get(f"/v1/nodes/{nothing}/inventory/versions").json == {"versions": []}
    assert whole.app.get(f"/v1/nodes/{nothing}/inventory/diff", expect_errors=True).status_int == 404


def test_a_rule_compares_with_the_last_successful_inspection(whole: Whole, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = []
    original = inventory.latest_inventory

    def latest_inventory(*arguments: Any) -> Any:
        reads.append(arguments)
        return original(*arguments)

    monkeypatch.setattr(inventory, "latest_inventory", latest_inventory)
    node, body = inspected(whole, ("A", "B"))
    assert reads == []
    reply = whole.app.post_json(RULES, {"conditions": [FEWER], "actions": [
        {"op": "set-attribute", "args": {"path": "/extra/before", "value": "{previous[disks][1][serial]}"}}]})
    assert (reply.status_int, reply.json.get("warnings", [])) == (201, []), reply.text
    uuid = reply.json["uuid"]
    # Failed inspections are not compared with.
    whole.inspect(node, {**with_disks(body, "A", "B", "C"), "error": "no"})
    assert "before" not in whole.inspect(node, with_disks(body, "A", "B"))["extra"]
    assert whole.inspect(node, with_disks(body, "A"))["extra"]["before"] == "B"
    assert len(reads) == 2

    def dry_run(**fields: Any) -> bool:
        answer = whole.app.post_json(f"{RULES}/dry_run", {"node": node, **fields})
        return next(bool(step["matched"]) for step in answer.json["steps"] if step.get("rule") == uuid)

    # The data of an inspection are compared with those before them, and a report with the last ones.
    kept = [each["version"] for each in whole.app.get(f"/v1/nodes/{node}/inventory/versions").json["versions"]]
    assert [dry_run(), *(dry_run(version=version) for version in (kept[0], kept[-2]))] == [True, False, False]
    assert not dry_run(report=with_disks(body, "A"))
    assert dry_run(report=with_disks(body))


def test_it_is_refused_in_the_early_phase_and_unknown_paths_are_warned_of(whole: Whole) -> None:
    body = {"conditions": [FEWER], "actions": [{"op": "fail", "args": ["no"]}]}
    reply = whole.app.post_json(RULES, {**body, "phase": "early"}, expect_errors=True)
    assert reply.status_int == 400
    assert "/conditions/0/args/values/1: column 2: 'previous' is not available in the early phase" in reply.text
    condition = {"op": "is-none", "args": {"value": "{previous[diskz]}"}}
    reply = whole.app.post_json(RULES, {**body, "conditions": [condition]})
    warning, = (each for each in reply.json["warnings"] if "path" in str(each))
    assert "previous[disks]" in str(warning)
