"""``POST /v1/inspection_rules/matches`` says of each node what its dry run says of the rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from ironic_rules.api.v1 import rule_matches
from tests.functional import whole as wholes
from tests.functional.installations import only_in_one_process
from tests.functional.test_bulk_dry_run import REPORT, stored
from tests.functional.whole import OneProcess

pytestmark = only_in_one_process("nodes are stored without an inspection")
RULES = "/v1/inspection_rules"
MATCHES = f"{RULES}/matches"
#: The UUID of the rule that is tried.
DRAFT = "00000000-0000-4000-8000-000000000001"
ACTION = {"op": "set-attribute", "args": {"path": "/extra/a", "value": "{inventory[cpu][count]}"}}
MANY_CPUS = {"uuid": DRAFT, "actions": [ACTION], "conditions": [
    {"op": "gt", "args": {"values": ["{inventory[cpu][count]}", 8]}}]}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OneProcess]:
    with wholes.running(tmp_path_factory.mktemp("matches")) as found:
        yield found


@pytest.fixture(scope="module")
def fleet(service: OneProcess) -> list[str]:
    """Nodes with 4 and 16 CPUs in turn, one in a scope of its own, and one that was never inspected."""
    known = [stored(service, number, {**REPORT, "cpus": 16 if number % 2 else 4}, owner="of matches",
                    **({"inspection_scope": "attic"} if number == 5 else {})) for number in range(6)]
    silent = service.app.post_json("/v1/nodes", {
        "name": "silent", "driver": "fake-hardware", "owner": "of matches"}).json["uuid"]
    return [*known, silent]


def matches(service: OneProcess, rule: dict[str, Any], **more: Any) -> Any:
    return service.app.post_json(MATCHES, {"rule": rule, "nodes": {"owner": "of matches"}, **more})


def test_each_verdict_is_that_of_the_dry_run_of_the_node(service: OneProcess, fleet: list[str]) -> None:
    failing = service.app.post_json(RULES, {
        "priority": 10, "conditions": [{"op": "eq", "args": {"values": ["{node[uuid]}", fleet[1]]}}],
        "actions": [{"op": "fail", "args": {"msg": "too old"}}]}).json["uuid"]
    own_failure = {**MANY_CPUS, "actions": [{"op": "fail", "args": {"msg": "many"}}]}
    seen: Counter[str] = Counter()
    for rule in (MANY_CPUS, own_failure, {**MANY_CPUS, "scope": "attic"}, {**MANY_CPUS, "enabled": False},
                 {**MANY_CPUS, "priority": 20}):
        reply = matches(service, rule).json
        assert (reply["rule"], reply["total"], reply["marker"]) == (DRAFT, 7, None)
        assert [node["uuid"] for node in reply["nodes"]] == fleet
        for node in reply["nodes"][:-1]:
            single = service.app.post_json(f"{RULES}/dry_run", {"node": node["uuid"], "as_if": [rule]}).json
            step = next((one for one in single["steps"] if one.get("rule") == DRAFT), None)
            failed = (single["failure"] or {}).get("rule") == DRAFT
            assert node["verdict"] == ("failed" if failed else "unreached" if step is None else
                                       "matched" if step["matched"] else "unmatched"), (rule, single)
            assert node["reason"] == (single["failure"] or {}).get("reason")
            seen[node["verdict"]] += 1
        assert (reply["nodes"][-1]["name"], reply["nodes"][-1]["verdict"]) == ("silent", "no data")
    assert set(seen) == {"matched", "unmatched", "failed", "unreached"}
    service.app.delete(f"{RULES}/{failing}")


def test_pages_join_to_the_whole_list_and_end_after_a_second(service: OneProcess, fleet: list[str],
                                                              monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule_matches, "_ENOUGH_S", 0.0)
    monkeypatch.setattr(rule_matches, "_BATCH", 2)
    for more in ({}, {"limit": 3}, {"limit": 1}):
        found: list[str] = []
        marker: dict[str, str] = {}
        while True:
            reply = matches(service, MANY_CPUS, **more, **marker).json
            assert (reply["total"] is None) == bool(marker)
            found += [node["uuid"] for node in reply["nodes"]]
            if reply["marker"] is None:
                break
            marker = {"marker": reply["marker"]}
        assert found == fleet


def test_mistakes_are_named_at_their_places(service: OneProcess, fleet: list[str]) -> None:
    for body, text in (
            ({"rule": {**MANY_CPUS, "actions": [{**ACTION, "op": "set-atribute"}]}}, "/rule/actions/0/op"),
            ({"rule": MANY_CPUS, "nodes": {"where": "vendor is dell"}}, "where"),
            ({"rule": MANY_CPUS, "nodes": {"colour": "red"}}, "colour"), ({}, "/rule"),
            ({"rule": MANY_CPUS, "limit": 0}, "/limit")):
        reply = service.app.post_json(MATCHES, body)
        assert reply.status_int == 400, body
        assert text in reply.text
