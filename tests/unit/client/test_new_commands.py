from __future__ import annotations

import json
from typing import Any

import pytest
from keystoneauth1.exceptions import ConnectFailure

from ironic_rules.client.new_commands import ImportRules
from tests.unit.client.openstack_app import Connection, refusal, run


def create(method: str, url: str, body: Any) -> dict[str, Any]:
    """Answer as the service does; ``description`` determines how."""
    assert (method, url) == ("POST", "/v1/inspection_rules")
    if body["description"] == "taken":
        raise refusal("a rule with this UUID exists", 409)
    if body["description"] == "unplugged":
        raise ConnectFailure("no route to host")
    return {"uuid": f"uuid-of-{body['description']}", **body}


@pytest.fixture
def imported(tmp_path):
    connection = Connection(create)

    def import_text(text: str) -> tuple[int, list[dict[str, Any]]]:
        path = tmp_path / "rules.yaml"
        path.write_text(text, encoding="utf-8")
        status, output = run(ImportRules, connection, str(path), "-f", "json")
        return status, json.loads(output)

    import_text.connection = connection
    return import_text


def test_r70_each_rule_of_a_file_is_created_as_it_stands(imported):
    status, rows = imported("- {description: a, scope: x, actions: []}\n- {description: b}\n")

    assert status == 0
    assert rows == [{"rule": 1, "uuid": "uuid-of-a", "description": "a", "result": "created"},
                    {"rule": 2, "uuid": "uuid-of-b", "description": "b", "result": "created"}]
    assert [body for _, _, body in imported.connection.requests] == [
        {"description": "a", "scope": "x", "actions": []}, {"description": "b"}]


def test_r70_what_fails_is_reported_with_its_reason_and_the_others_are_created(imported):
    status, rows = imported("""
        - {uuid: given, description: taken}
        - {description: unplugged}
        - {description: !!set {a, b}}
        - {description: last}
        """)

    assert status == 1
    assert [(row["uuid"], row["result"].partition(":")[0]) for row in rows] == [
        ("given", "failed"), (None, "failed"), (None, "failed"), ("uuid-of-last", "created")]
    assert "a rule with this UUID exists (HTTP 409)" in rows[0]["result"]
    assert "no route to host" in rows[1]["result"]
    assert "cannot be written as JSON" in rows[2]["result"]


def test_r70_a_conflict_is_not_tried_again(imported):
    imported("{description: taken}")

    assert imported.connection.conflict_max_retries == 0
