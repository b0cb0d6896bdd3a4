from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from keystoneauth1.exceptions import ConnectFailure
from osc_lib.exceptions import CommandError

from ironic_rules.client.rule_commands import CHANGED, ApplyRules, ExportRules, ImportRules
from ironic_rules.models.rules import WRITABLE, Rule
from tests.unit.client.openstack_app import Connection, refusal, run

KINDS = ("created", "changed", "replaced", "unchanged", "removed")
TAG = '"tag-of-17"'


def changes(body: dict[str, Any], **lists: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a reply to PUT."""
    return {"revision": 17, "dry_run": body["dry_run"], "bundle": body["bundle"], "warnings": [],
            **{kind: lists.get(kind, []) for kind in KINDS}}


def store(method: str, url: str, body: Any) -> dict[str, Any]:
    """Answer as the service does; ``description`` determines how."""
    assert (method, url) == ("PUT", "/v1/inspection_rules")
    descriptions = [rule.get("description") for rule in body["rules"]]
    if "unplugged" in descriptions:
        raise ConnectFailure("no route to host")
    problems = [f"/rules/{index}/uuid: {why}" for index, text in enumerate(descriptions) if text == "bad"
                for why in ("is taken", "is ugly")]
    if problems:
        raise refusal("; ".join(problems))
    found: dict[str, list[dict[str, Any]]] = {kind: [] for kind in KINDS}
    for index, text in enumerate(descriptions):
        kind = "unchanged" if text == "stored" else "created"
        found[kind].append({"uuid": f"uuid-of-{text}", "name": None, "description": text, "pointer": f"/rules/{index}"})
    return changes(body, **found) | {"warnings": [
        {"pointer": f"/rules/{index}/actions/0", "text": "is odd", "nearest": "even"}
        for index, text in enumerate(descriptions) if text == "odd"]}


Importing = Callable[[str], tuple[int, list[dict[str, Any]]]]


@pytest.fixture
def connection() -> Connection:
    return Connection(store)


@pytest.fixture
def imported(connection, tmp_path) -> Importing:
    def import_text(text: str) -> tuple[int, list[dict[str, Any]]]:
        path = tmp_path / "rules.yaml"
        path.write_text(text, encoding="utf-8")
        status, output = run(ImportRules, connection, str(path), "-f", "json")
        return status, json.loads(output)

    return import_text


def test_r70_the_rules_of_a_file_are_imported_by_one_request(connection, imported):
    status, rows = imported("- {description: a, scope: x, actions: []}\n- {description: stored}\n")

    assert status == 0
    assert rows == [{"rule": 1, "uuid": "uuid-of-a", "description": "a", "result": "created"},
                    {"rule": 2, "uuid": "uuid-of-stored", "description": "stored", "result": "unchanged"}]
    assert [body for _, _, body in connection.requests] == [{
        "rules": [{"description": "a", "scope": "x", "actions": []}, {"description": "stored"}],
        "bundle": None, "prune": False, "dry_run": False}]


def test_legacy_rules_are_converted_by_the_service_and_imported(tmp_path, capsys):
    replies = {
        "a": {"verdict": "exact", "rule": {"description": "a", "actions": []}, "notes": [], "problems": []},
        "b": {"verdict": "exact with a note", "rule": {"description": "b", "actions": []}, "problems": [],
              "notes": [{"pointer": "/conditions/0", "text": "It differs."}]},
        "c": {"verdict": "not convertible", "rule": None, "notes": [],
              "problems": [{"pointer": "/actions/0", "text": "it has no equivalent"}]},
    }

    def answer(method: str, url: str, body: Any) -> dict[str, Any]:
        if url != "/v1/rules?convert_only=true":
            return store(method, url, body)
        if body["description"] == "d":
            raise refusal("/actions: is required")
        return replies[body["description"]]

    connection = Connection(answer)
    path = tmp_path / "old.json"
    path.write_text(json.dumps({"rules": [{"description": name} for name in "abcd"]}))

    status, output = run(ImportRules, connection, str(path), "--legacy", "-f", "json")

    assert [row["result"] for row in json.loads(output)] == [
        "created", "created", "failed: not convertible: /actions/0: it has no equivalent",
        "failed: /actions: is required (HTTP 400)"]
    assert status == 1
    assert connection.requests[-1][2]["rules"] == [replies["a"]["rule"], replies["b"]["rule"]]
    assert f"note: {path}: /rules/1/conditions/0: It differs.\n" in capsys.readouterr().err


def test_r70_what_fails_is_reported_with_its_reason_and_the_others_are_imported(connection, imported):
    status, rows = imported("""
        - {uuid: given, description: bad}
        - {description: a}
        - {description: unplugged, bundle: far}
        - {description: !!set {a, b}}
        - {description: last}
        """)

    assert status == 1
    assert [(row["rule"], row["uuid"], row["result"].partition(":")[0]) for row in rows] == [
        (1, "given", "failed"), (2, "uuid-of-a", "created"), (3, None, "failed"), (4, None, "failed"),
        (5, "uuid-of-last", "created")]
    assert rows[0]["result"] == "failed: /uuid: is taken; /uuid: is ugly (HTTP 400)"
    assert "no route to host" in rows[2]["result"]
    assert "cannot be written as JSON" in rows[3]["result"]
    assert [(body["bundle"], len(body["rules"])) for _, _, body in connection.requests] == [
        (None, 3), (None, 2), ("far", 1)]


def test_r70_a_conflict_is_not_tried_again(connection, imported):
    imported("{description: a}")

    assert connection.conflict_max_retries == 0


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.yaml").write_text("- {description: a}\n- {description: odd}\n", encoding="utf-8")
    (tmp_path / "b.yaml").write_text("{description: stored}\n", encoding="utf-8")
    return tmp_path


def test_a_directory_is_applied_by_one_request(connection, folder, capsys):
    status, output = run(ApplyRules, connection, ".", "--bundle", "racks", "--prune", "-f", "json")

    assert connection.requests == [("PUT", "/v1/inspection_rules", {
        "rules": [{"description": "a"}, {"description": "odd"}, {"description": "stored"}],
        "bundle": "racks", "prune": True, "dry_run": False})]
    assert connection.headers == [{}]
    assert status == 0
    assert [(row["uuid"], row["change"]) for row in json.loads(output)] == [
        ("uuid-of-a", "created"), ("uuid-of-odd", "created"), ("uuid-of-stored", "unchanged")]
    assert capsys.readouterr().err.splitlines() == [
        "warning: a.yaml: /1/actions/0: is odd (nearest: even)",
        "Revision 17: 2 created, 0 changed, 0 replaced, 0 removed, 1 unchanged"]


def test_nothing_is_sent_if_any_file_is_broken(connection, folder):
    (folder / "a.yaml").write_text("[", encoding="utf-8")
    (folder / "c.yaml").write_text("- {description: !!set {a, b}}\n", encoding="utf-8")

    with pytest.raises(CommandError, match=r"(?s)^a\.yaml is neither.*\nc\.yaml: /0: the rule cannot be written"):
        run(ApplyRules, connection, ".")
    (folder / "a.yaml").unlink()
    with pytest.raises(CommandError, match=r"^c\.yaml: /0: the rule cannot be written"):
        run(ApplyRules, connection, ".")
    assert connection.requests == []


def test_a_refusal_names_the_places_in_the_files(connection, folder):
    (folder / "b.yaml").write_text("{description: bad}\n", encoding="utf-8")

    with pytest.raises(CommandError) as raised:
        run(ApplyRules, connection, ".")

    assert str(raised.value).splitlines() == [
        "b.yaml: /uuid: is taken", "b.yaml: /uuid: is ugly", "Nothing was changed. (HTTP 400)"]


def test_a_dry_run_shows_a_line_for_each_difference(folder, capsys):
    patch = [{"op": "replace", "path": "/priority", "value": 5}, {"op": "add", "path": "/conditions/-", "value": {}},
             {"op": "remove", "path": "/scope"}]
    connection = Connection(lambda method, url, body: changes(body, changed=[
        {"uuid": "u", "name": "n", "description": "d", "pointer": "/rules/0", "patch": patch}]))

    _, table = run(ApplyRules, connection, ".", "--dry-run")
    status, output = run(ApplyRules, connection, ".", "--dry-run", "--detailed-exitcode", "-f", "json")

    lines = [line.split(" | ")[-1].rstrip(" |") for line in table.splitlines()[3:-1]]
    assert lines == ["~ /priority: 5", "+ /conditions/-: {}", "- /scope"]
    assert json.loads(output) == [
        {"uuid": "u", "name": "n", "description": "d", "change": "changed", "patch": patch}]
    assert status == CHANGED
    assert "Dry run against revision 17: 0 created, 1 changed" in capsys.readouterr().err


def test_a_revision_that_is_named_is_sent_as_a_precondition(folder):
    connection = Connection(lambda method, url, body: changes(body), {"ETag": TAG})

    run(ApplyRules, connection, ".", "--revision", "17")
    with pytest.raises(CommandError, match="revision is 17, not 16"):
        run(ApplyRules, connection, ".", "--revision", "16")

    assert [(body["dry_run"], len(body["rules"])) for _, _, body in connection.requests] == [
        (True, 0), (False, 3), (True, 0)]
    assert connection.headers == [{}, {"If-Match": TAG}, {}]


STORED = {"uuid": "u", "name": None, "bundle": None, "description": "d", "enabled": True, "phase": "main",
          "priority": 0, "scope": None, "max_nodes": None, "nodes_counted": 0, "sensitive": False, "built_in": False,
          "conditions": [], "actions": [{"op": "fail"}], "created_at": "now", "valid": True, "links": []}


def exported(capsys: pytest.CaptureFixture[str], rules: list[dict[str, Any]], *arguments: str) -> tuple[str, str]:
    """Return what is exported, and what is printed on the standard error output."""
    connection = Connection(lambda method, url, body: {"inspection_rules": rules})
    _, output = run(ExportRules, connection, *arguments)
    return output, capsys.readouterr().err


def test_only_what_its_author_wrote_is_exported(capsys):
    other = {name: f"a {name}" for name in WRITABLE} | {"sensitive": False, "built_in": False}
    output, errors = exported(capsys, [STORED, other], "--all")

    assert yaml.safe_load(output) == [
        {"uuid": "u", "description": "d", "scope": None, "actions": [{"op": "fail"}]},
        {name: value for name, value in other.items() if name not in ("uuid", "sensitive", "built_in")}]
    assert errors == ""


def test_rules_of_an_ironic_are_exported_without_the_fields_that_it_lacks(capsys):
    rule = {name: STORED[name] for name in (
        "uuid", "description", "priority", "phase", "sensitive", "conditions", "actions", "created_at", "links")}

    output, errors = exported(capsys, [rule, {**rule, "uuid": "h", "sensitive": True, "actions": None}])

    assert yaml.safe_load(output) == [{"uuid": "u", "description": "d", "actions": [{"op": "fail"}]}]
    assert "uuid h, name null" in errors


def test_what_is_left_out_of_an_export_is_the_default_of_the_service(capsys):
    defaults = {name: getattr(Rule(), name) for name in WRITABLE} | {"uuid": "u", "built_in": False}

    output, _ = exported(capsys, [defaults])

    assert yaml.safe_load(output) == [{"uuid": "u", "scope": None, "actions": []}]


def test_sensitive_rules_are_named_instead_of_exported(capsys, tmp_path):
    hidden = {**STORED, "uuid": "h", "sensitive": True, "conditions": None, "actions": None, "description": "x\n- y"}
    output, errors = exported(capsys, [hidden, {**STORED, "built_in": True}, {**STORED, "bundle": "b"}])
    path = tmp_path / "rules.yaml"
    exported(capsys, [{**STORED, "bundle": "b"}, STORED], str(path), "--bundle", "b")

    assert yaml.safe_load(output) == []
    assert '#   uuid h, name null, description "x\\n- y"' in output
    assert "uuid h" in errors
    assert "--prune" in errors
    assert yaml.safe_load(path.read_text(encoding="utf-8")) == [
        {"uuid": "u", "description": "d", "scope": None, "actions": [{"op": "fail"}]}]


def test_rules_that_change_while_they_are_read_are_not_exported():
    def pages(method: str, url: str, body: Any) -> Any:
        first = "marker" not in url
        connection.reply_headers = {"ETag": f'"{first}"'}
        return {"inspection_rules": [STORED], **({"next": "http://x/?marker=u"} if first else {})}

    connection = Connection(pages)

    with pytest.raises(CommandError, match="changed while they were read"):
        run(ExportRules, connection)
