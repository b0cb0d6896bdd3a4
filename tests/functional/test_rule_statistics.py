"""Statistics of rules: what they count, in the conductor and in the API, and where they are kept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.functional import whole as wholes
from tests.functional.processes import wait_for
from tests.functional.whole import OneProcess

RULES = "/v1/inspection_rules"
BUILT_IN = "00000000-0000-4000-8000-0000000000b1"
TEXT = """[inspection_rules]
statistics_interval = 1
built_in = {folder}/built-in.yaml
[api]
serve_metrics = true
"""
NUMBERS = ("considered", "evaluated", "matched", "failed", "nodes_changed")
NEVER = {"op": "eq", "args": ["{inventory[cpu][architecture]}", "no-such"]}
ALWAYS = {"op": "eq", "args": ["{inventory[cpu][architecture]}", "x86_64"]}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OneProcess]:
    folder = tmp_path_factory.mktemp("statistics")
    (folder / "built-in.yaml").write_text(
        f"- uuid: {BUILT_IN}\n  name: always\n  priority: 10000\n  actions:\n  - op: log\n    args: [seen]\n")
    with wholes.running(folder, TEXT.format(folder=folder)) as found:
        yield found


@pytest.fixture
def whole(service: OneProcess) -> Iterator[OneProcess]:
    yield service
    assert service.app.delete(RULES).status_int == 204


def rule(whole: OneProcess, *actions: object, **fields: object) -> str:
    reply = whole.app.post_json(RULES, {"actions": list(actions), **fields})
    assert reply.status_int == 201, reply.text
    return str(reply.json["uuid"])


def set_extra(key: str, value: object) -> dict[str, object]:
    return {"op": "set-attribute", "args": [f"/extra/{key}", value]}


def inspected(whole: OneProcess, times: int = 1, **fields: Any) -> str:
    node = whole.enroll("manageable", **fields)
    _, body = whole.machine()
    for _ in range(times):
        whole.inspect(node, body)
    node_id = whole.row(node).id
    # What an inspection adds to the statistics, it adds after its transaction.
    wait_for("the worker", lambda: not whole.conductor.workers.is_active(node_id))
    whole.conductor.rule_statistics.flush()
    return node


def shown(whole: OneProcess, uuid: str) -> dict[str, Any]:
    reply = whole.app.get(f"{RULES}/{uuid}/statistics")
    assert reply.status_int == 200, reply.text
    return dict(reply.json)


def numbers(whole: OneProcess, uuid: str) -> tuple[int, ...]:
    found = shown(whole, uuid)
    return tuple(found[name] for name in NUMBERS)


def test_rules_are_considered_evaluated_and_matched(whole: OneProcess) -> None:
    before = numbers(whole, BUILT_IN)
    excluded = rule(whole, set_extra("a", 1), conditions=[NEVER])
    evaluated = rule(whole, set_extra("a", 1), conditions=[{"op": "is-true", "args": ["{node[extra][no]}"]}])
    matched = rule(whole, set_extra("b", 1), conditions=[ALWAYS])
    of_others = rule(whole, set_extra("c", 1), scope="elsewhere")
    disabled = rule(whole, set_extra("d", 1), enabled=False)
    assert numbers(whole, matched) == (0, 0, 0, 0, 0)
    inspected(whole, times=2)
    other = inspected(whole)
    assert numbers(whole, excluded) == (3, 0, 0, 0, 0)
    assert numbers(whole, evaluated) == (3, 3, 0, 0, 0)
    assert numbers(whole, matched) == (3, 3, 3, 0, 2)
    assert numbers(whole, of_others) == numbers(whole, disabled) == (0, 0, 0, 0, 0)
    assert [after - old for after, old in zip(numbers(whole, BUILT_IN), before, strict=True)] == [3, 3, 3, 0, 0]
    assert (shown(whole, matched)["last_node"], shown(whole, excluded)["last_matched_at"]) == (other, None)
    text = whole.app.get("/metrics").text
    assert f'ironic_rules_inspection_rule_matched_total{{rule="{matched}"}} 3.0' in text
    assert f'inspection_rule_evaluated_total{{rule="{excluded}"}}' not in text


def test_a_rule_that_changes_the_scope_and_one_that_fails_end_what_is_considered(whole: OneProcess) -> None:
    moves = rule(whole, {"op": "set-attribute", "args": ["/inspection_scope", "b"]}, priority=9, scope="a")
    left = rule(whole, set_extra("left", 1), priority=8, scope="a")
    reached = rule(whole, set_extra("b", 1), priority=7, scope="b")
    fails = rule(whole, {"op": "fail", "args": ["no"]}, priority=6)
    after = rule(whole, set_extra("after", 1), priority=5)
    inspected(whole, inspection_scope="a")
    assert numbers(whole, moves) == (1, 1, 1, 0, 0)  # what failed is not saved
    assert numbers(whole, left) == (0, 0, 0, 0, 0)
    assert numbers(whole, reached) == (1, 1, 1, 0, 0)
    assert numbers(whole, fails) == (1, 1, 1, 1, 0)
    assert numbers(whole, after) == (0, 0, 0, 0, 0)


def test_rules_that_are_found_by_what_others_wrote_are_counted_once(whole: OneProcess) -> None:
    condition = {"op": "eq", "args": ["{plugin_data[site]}", "here"]}
    writes = rule(whole, {"op": "set-plugin-data", "args": ["/site", "here"]}, priority=9)
    between = rule(whole, set_extra("x", 1), priority=8)
    finds = rule(whole, set_extra("y", 1), priority=7, conditions=[condition])
    inspected(whole)
    assert [numbers(whole, uuid)[:3] for uuid in (writes, between, finds)] == [(1, 1, 1)] * 3


def test_a_sensitive_rule_shows_only_whether_it_matches(whole: OneProcess) -> None:
    uuid = rule(whole, set_extra("s", 1), sensitive=True)
    node = inspected(whole)
    found = shown(whole, uuid)
    assert (found["matched"], found["last_node"]) == (1, node)
    assert (found["evaluated"], found["nodes_changed"]) == (None, None)
    assert f'inspection_rule_evaluated_total{{rule="{uuid}"}}' not in whole.app.get("/metrics").text


def test_early_rules_are_counted_by_the_api(whole: OneProcess) -> None:
    uuid = rule(whole, {"op": "log", "args": ["early"]}, phase="early")
    fails = rule(whole, {"op": "fail", "args": ["no"]}, phase="early", conditions=[
        {"op": "eq", "args": ["{inventory[system_vendor][product_name]}", "refused"]}])
    node = inspected(whole)
    wait_for("the statistics", lambda: shown(whole, uuid)["matched"] == 1)
    assert (numbers(whole, uuid), shown(whole, uuid)["last_node"]) == ((1, 1, 1, 0, 0), node)
    body = whole.machine()[1]
    body["inventory"]["system_vendor"] = {"product_name": "refused"}
    assert whole.app.post_json("/v1/continue_inspection", body).status_int == 404
    wait_for("the statistics", lambda: shown(whole, fails)["failed"] == 1)
    assert numbers(whole, fails)[1:] == (1, 1, 1, 0)


def test_dry_runs_are_not_counted(whole: OneProcess) -> None:
    uuid = rule(whole, set_extra("a", 1))
    node = inspected(whole)
    assert whole.app.post_json(f"{RULES}/dry_run", {"node": node}).json["outcome"] == "finished"
    whole.conductor.rule_statistics.flush()
    assert numbers(whole, uuid)[:3] == (1, 1, 1)


def test_of_a_deleted_rule_nothing_remains(whole: OneProcess) -> None:
    uuid = rule(whole, set_extra("a", 1))
    node = inspected(whole)
    whole.provision(node, "inspect")
    assert whole.app.delete(f"{RULES}/{uuid}").status_int == 204
    assert whole.app.get(f"{RULES}/{uuid}/statistics").status_int == 404
    assert uuid not in [row["uuid"] for row in whole.app.get(f"{RULES}/statistics").json["statistics"]]
    rule(whole, set_extra("a", 1), uuid=uuid)
    assert numbers(whole, uuid) == (0, 0, 0, 0, 0)
    whole.provision(node, "abort")


def test_the_list_finds_rules_that_do_not_match(whole: OneProcess) -> None:
    # So that the built-in rule has matched more often than the others, also if this test is the first one.
    inspected(whole)
    dead = rule(whole, set_extra("a", 1), name="dead", conditions=[NEVER])
    used = rule(whole, set_extra("b", 1), name="used")
    inspected(whole)
    at = shown(whole, used)["last_matched_at"]

    def listed(query: str) -> list[str]:
        reply = whole.app.get(f"{RULES}/statistics?{query}")
        assert reply.status_int == 200, reply.text
        return [row["uuid"] for row in reply.json["statistics"]]

    assert listed("") == [dead, used, BUILT_IN]
    assert listed("never_matched_since=2026-01-01T00:00:00Z") == [dead]
    assert listed(f"never_matched_since={at.replace('+', '%2B')}") == [dead]
    assert listed("never_matched_since=9999-01-01") == [dead, used, BUILT_IN]
    assert listed(f"sort_key=matched&sort_dir=desc&limit=1&marker={BUILT_IN}") == [used]
    assert listed("sort_key=name") == [BUILT_IN, dead, used]
    page = whole.app.get(f"{RULES}/statistics?limit=1&fields=uuid").json
    assert page["statistics"][0].keys() == {"uuid", "links"}
    assert f"marker={dead}" in page["next"]
    for query in ("never_matched_since=yesterday", "sort_key=actions", "fields=actions", "never_matched=1"):
        assert whole.app.get(f"{RULES}/statistics?{query}").status_int == 400, query
    assert whole.app.get(f"{RULES}/statistics?marker=00000000-0000-4000-8000-00000000dead").status_int == 404
    assert whole.app.get(f"{RULES}/nonsense/statistics").status_int == 400


def test_what_cannot_be_written_is_kept(whole: OneProcess, monkeypatch: pytest.MonkeyPatch,
                                        caplog: pytest.LogCaptureFixture) -> None:
    uuid = rule(whole, set_extra("a", 1))
    counted = whole.conductor.rule_statistics
    with monkeypatch.context() as patched:
        patched.setattr("ironic_rules.db.rule_records.add_statistics", lambda *arguments: 1 / 0)
        inspected(whole)
        assert "Statistics of rules cannot be written now" in caplog.text
        assert numbers(whole, uuid) == (0, 0, 0, 0, 0)
    counted.flush()
    assert numbers(whole, uuid) == (1, 1, 1, 0, 1)


def test_the_conductor_writes_them_now_and_then(whole: OneProcess) -> None:
    uuid = rule(whole, set_extra("a", 1))
    node = whole.enroll("manageable")
    whole.inspect(node, whole.machine()[1])
    wait_for("the statistics", lambda: shown(whole, uuid)["matched"] == 1)
