"""Rules that are kept in files: ``apply``, ``export``, ``import`` and revisions, against a running service.

``openstack`` runs in this process here, so that a command takes milliseconds; ``test_docs`` types them into a shell.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from ironic_rules.client.rule_commands import CHANGED
from tests.functional.clients import machines
from tests.functional.clients.test_cli import Cli

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::DeprecationWarning"),
              pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")]

FAIL = [{"op": "fail", "args": {"msg": "no"}}]
NAMED = {"name": "flash", "description": "only flash", "priority": 10, "phase": "main", "scope": "lab", "max_nodes": 5,
         "conditions": [{"op": "!is-empty", "args": {"value": "{inventory[disks]}"}}], "actions": FAIL}
UNNAMED = {"description": "no name", "enabled": False, "scope": None, "actions": FAIL}
HIDDEN = {"name": "secret", "sensitive": True, "scope": None, "actions": FAIL}


class Done(NamedTuple):
    """The outcome of a command."""

    status: int
    output: str
    errors: str

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows of a table in JSON."""
        return list(json.loads(self.output))

    def changes(self) -> list[tuple[str | None, str]]:
        """Return name and change of each rule."""
        return [(row["name"], row["change"]) for row in self.rows]


Run = Callable[..., Done]


@pytest.fixture
def run(endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """``openstack baremetal inspection rule …``, or of others, in an empty directory."""
    from openstackclient.shell import OpenStackShell  # here, because importing it warns

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level

    def run(command: str, json_rows: bool = True, of: str = "inspection rule") -> Done:
        output, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
            status = OpenStackShell().run(
                ["--os-auth-type", "none", "--os-endpoint", endpoint, "baremetal", *of.split(),
                 *command.split(), *(["-f", "json"] if json_rows else [])])
        return Done(status, output.getvalue(), errors.getvalue())

    yield run
    root.handlers[:] = handlers
    root.setLevel(level)
    machines.call(endpoint, "DELETE", "inspection_rules")


def write(path: Path, *rules: Any) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(yaml.safe_dump(list(rules)), encoding="utf-8")


def stored(endpoint: str) -> list[dict[str, Any]]:
    """Return all rules, with the API only; its pages have two rules."""
    found: list[dict[str, Any]] = []
    while True:
        marker = f"&marker={found[-1]['uuid']}" if found else ""
        page = machines.call(endpoint, "GET", f"inspection_rules?detail=true{marker}")["inspection_rules"]
        if not page:
            return found
        found += page


def test_a_directory_is_applied_exported_changed_and_rolled_back(run, tmp_path):
    write(tmp_path / "lab" / "a.yaml", NAMED)
    write(tmp_path / "lab" / "b.yaml", UNNAMED, {**UNNAMED, "description": "another"})

    first = run("apply lab --bundle lab")
    again = run("apply lab --bundle lab --prune --detailed-exitcode")
    run("export lab.yaml --bundle lab", json_rows=False)
    exported = (tmp_path / "lab.yaml").read_text(encoding="utf-8")
    of_export = run("apply lab.yaml --bundle lab --prune --detailed-exitcode")

    write(tmp_path / "lab" / "a.yaml", {**NAMED, "priority": 20})
    write(tmp_path / "lab" / "b.yaml", UNNAMED)
    tried = run("apply lab --bundle lab --prune --dry-run --detailed-exitcode")
    revision = int(tried.errors.split("revision ")[1].split(":")[0])
    stale = run(f"apply lab --bundle lab --prune --revision {revision - 1}", json_rows=False)
    changed = run(f"apply lab --bundle lab --prune --revision {revision}")
    revisions = run("revision list --limit 2").rows
    shown = json.loads(run(f"revision show {revision}").output)
    back = run(f"revision rollback {revision}")

    assert (first.status, first.changes()) == (0, [("flash", "created"), (None, "created"), (None, "created")])
    assert first.errors == f"Revision {revision}: 3 created, 0 changed, 0 replaced, 0 removed, 0 unchanged\n"
    for same in (again, of_export):
        assert (same.status, {row["change"] for row in same.rows}, len(same.rows)) == (0, {"unchanged"}, 3)
    assert (tried.status, tried.changes()) == (CHANGED, [("flash", "changed"), (None, "removed"), (None, "unchanged")])
    assert tried.rows[0]["patch"] == [{"op": "replace", "path": "/priority", "value": 20}]
    assert stale.status == 1
    assert f"revision is {revision}, not {revision - 1}" in stale.errors
    assert (changed.status, changed.changes()) == (0, tried.changes())
    assert [(row["revision"], "2" in row["created_at"]) for row in revisions] == [
        (revision + 1, True), (revision, True)]
    assert [rule["priority"] for rule in shown["rules"]] == [10, 0, 0]
    assert (back.status, sorted(change for _, change in back.changes())) == (0, ["changed", "created", "unchanged"])
    assert run("export --bundle lab", json_rows=False).output == exported


def test_nothing_is_changed_unless_all_files_are_right(run, endpoint, tmp_path):
    write(tmp_path / "rules" / "a.yaml", UNNAMED, {**NAMED, "conditions": [{"op": "nosuch"}]})
    (tmp_path / "rules" / "b.json").write_text(json.dumps({**NAMED, "priority": -1}), encoding="utf-8")

    refused = run("apply rules", json_rows=False)
    (tmp_path / "rules" / "c.yml").write_text("[", encoding="utf-8")
    broken = run("apply rules", json_rows=False)

    assert (refused.status, broken.status) == (1, 1)
    places = [line.split(": ")[:2] for line in refused.errors.splitlines()]
    assert ["rules/a.yaml", "/1/conditions/0/op"] in places
    assert ["rules/b.json", "/name"] in places
    assert ["rules/b.json", "/priority"] in places
    assert "rules/c.yml is neither JSON nor YAML: line " in broken.errors
    assert "rules/a.yaml" not in broken.errors
    assert stored(endpoint) == []


def test_sensitive_rules_are_applied_but_not_exported(run, endpoint, tmp_path):
    write(tmp_path / "rules.yaml", NAMED, HIDDEN)

    first = run("apply rules.yaml")
    again = run("apply rules.yaml --prune --dry-run")
    exported = run("export", json_rows=False)
    (tmp_path / "rules.yaml").write_text(exported.output, encoding="utf-8")
    pruned = run("apply rules.yaml --prune")

    assert first.changes() == [("flash", "created"), ("secret", "created")]
    assert again.changes() == [("secret", "replaced"), ("flash", "unchanged")]
    assert yaml.safe_load(exported.output) == [{name: value for name, value in NAMED.items() if name != "phase"}]
    assert '"secret"' in exported.errors
    assert pruned.changes() == [("secret", "removed"), ("flash", "unchanged")]
    assert [rule["name"] for rule in stored(endpoint)] == ["flash"]


def test_an_import_is_repeated_without_effect(run, endpoint, tmp_path):
    write(tmp_path / "rules.yaml", NAMED, UNNAMED, UNNAMED, {**NAMED, "bundle": "lab"}, {**NAMED, "priority": "high"})

    first = run("import rules.yaml")
    again = run("import rules.yaml")
    before = stored(endpoint)
    run("export all.yaml --all", json_rows=False)
    machines.call(endpoint, "DELETE", "inspection_rules")
    restored = run("import all.yaml")

    assert [row["result"].partition(":")[0] for row in first.rows] == ["created"] * 4 + ["failed"]
    assert [row["result"].partition(":")[0] for row in again.rows] == ["unchanged"] * 4 + ["failed"]
    assert (first.status, again.status, restored.status) == (1, 1, 0)
    assert len({row["uuid"] for row in first.rows[:4]}) == 4
    assert [row["uuid"] for row in first.rows[:4]] == [row["uuid"] for row in again.rows[:4]]
    assert sorted((rule["name"] or "", rule["bundle"] or "", rule["enabled"]) for rule in before) == [
        ("", "", False), ("", "", False), ("flash", "", True), ("flash", "lab", True)]
    assert [row["result"] for row in restored.rows] == ["created"] * 4
    assert len(stored(endpoint)) == 4


def test_two_clients_at_once_create_each_rule_once(run, endpoint, tmp_path):
    write(tmp_path / "rules" / "a.yaml", NAMED, UNNAMED)
    write(tmp_path / "rules" / "b.yaml", {**UNNAMED, "description": "another"})
    clients = [Cli(endpoint, tmp_path) for _ in range(2)]

    outcomes = [client.finish(process) for client, process in [
        (client, client.start("inspection rule apply rules --prune")) for client in clients]]

    assert [status for status, _, _ in outcomes] == [0, 0], outcomes
    assert [rule["description"] for rule in stored(endpoint)] == ["only flash", "no name", "another"]


def test_the_rules_of_files_are_found_by_what_they_do_and_in_their_order(run, tmp_path):
    early = {**NAMED, "name": "first", "phase": "early", "scope": None, "max_nodes": None}
    write(tmp_path / "rules.yaml", UNNAMED, NAMED, HIDDEN, early)
    run("apply rules.yaml --bundle lab")

    ordered = run("list --sort execution --limit 0 --bundle lab --fields name phase priority enabled")
    reverse = run("list --sort execution:desc --limit 0 --bundle lab --fields name")
    failing = run("list --op fail --enabled --valid --no-built-in --limit 0")
    described = run("list --description NAME --disabled")
    writing = run("list --writes /driver --limit 0")

    assert [row["name"] for row in ordered.rows] == ["first", "flash", None, "secret"]
    assert [row["name"] for row in reverse.rows] == ["secret", None, "flash", "first"]
    assert [list(row.items())[1:] for row in failing.rows] == [
        [("description", "only flash"), ("phase", phase), ("priority", 10), ("scope", scope), ("enabled", True)]
        for phase, scope in (("main", "lab"), ("early", None))]
    assert [row["description"] for row in described.rows] == ["no name"]
    assert writing.rows == []


def test_what_an_ironic_prints_is_imported_as_it_is(run: Run, endpoint: str, tmp_path: Path) -> None:
    link = "http://127.0.0.1:6385/v1/inspection/d1f65bac-7c46-4d25-af9d-7974c84c1b1d"
    uuid, hidden = "d1f65bac-7c46-4d25-af9d-7974c84c1b1d", "206b032c-30ea-431a-af69-cba666c29961"
    rule = {"uuid": uuid, "created_at": "2026-11-28T07:08:04.155948+00:00", "updated_at": None, "description": "first",
            "priority": 5, "sensitive": False, "phase": "main", "conditions": [], "actions": FAIL,
            "links": [{"href": link, "rel": "self"}]}
    sealed = {**rule, "uuid": hidden, "sensitive": True, "conditions": None, "actions": None}
    (tmp_path / "ironic.json").write_text(json.dumps({"inspection_rules": [rule, sealed]}), encoding="utf-8")

    imported = run("import ironic.json")
    refused = run("apply ironic.json", json_rows=False)
    (tmp_path / "listed.json").write_text(run("list --long").output, encoding="utf-8")
    again = run("import listed.json")

    assert [(row["uuid"], row["result"].split(" (")[0].split(":")[0]) for row in imported.rows] == [
        (uuid, "created"), (hidden, "failed")]
    assert imported.status == refused.status == 1
    assert "ironic.json: /inspection_rules/1: the rule is sensitive" in refused.errors
    assert [row["result"] for row in again.rows] == ["unchanged"]


RACK = {"name": "rack", "unit": "m", "value": "{plugin_data[rack]}", "watched": True}
FAST = {"name": "fast_nics", "description": "25 Gbit/s or more", "loop": "{inventory[interfaces]}",
        "conditions": [{"op": "ge", "args": ["{item[speed_mbps]}", 25000]}], "value": "{item[name]}",
        "combine": "count"}


def test_facts_are_kept_in_files(run: Run, tmp_path: Path) -> None:
    def fact(command: str, json_rows: bool = True) -> Done:
        return run(command, json_rows, of="fact")

    write(tmp_path / "facts" / "a.yaml", RACK)
    write(tmp_path / "facts" / "b.yaml", FAST)
    tried = fact("apply facts --bundle site --dry-run --detailed-exitcode")
    assert (tried.status, tried.changes()) == (CHANGED, [("rack", "created"), ("fast_nics", "created")])
    assert tried.errors.splitlines() == ["Dry run: 2 created, 0 changed, 0 removed, 0 unchanged"]

    applied = fact("apply facts --bundle site --prune")
    assert (applied.status, applied.changes()) == (0, [("rack", "created"), ("fast_nics", "created")])
    assert "finds the values of all nodes" in applied.errors
    assert fact("apply facts --bundle site --prune --detailed-exitcode").status == 0

    exported = fact("export --bundle site", json_rows=False).output
    assert yaml.safe_load(exported) == [FAST, RACK]
    assert fact("export one.yaml", json_rows=False).status == 0
    assert yaml.safe_load((tmp_path / "one.yaml").read_text()) == []
    assert {each["bundle"] for each in yaml.safe_load(fact("export --all", json_rows=False).output)} == {"site"}

    # Output of the service is accepted, and so is a file that export has written.
    shown = json.loads(fact("show rack").output)
    write(tmp_path / "facts" / "a.yaml", shown)
    (tmp_path / "facts" / "b.yaml").unlink()
    assert fact("apply facts --bundle site --prune").changes() == [("fast_nics", "removed"), ("rack", "unchanged")]
    listed = json.loads(fact("list --bundle site").output)
    assert [(each["name"], each["watched"]) for each in listed] == [("rack", True)]
    assert fact("delete rack", json_rows=False).status == 0


def test_problems_of_facts_are_named_by_their_places_in_the_files(run: Run, tmp_path: Path) -> None:
    write(tmp_path / "facts" / "a.yaml", {**RACK, "value": "{inventory[x]|gibb}"}, {"name": "vendor", "value": 5})
    write(tmp_path / "facts" / "b.yaml", {"name": "b", "origin": "built-in", "created_at": "x", "value": "{node[x]}"})

    refused = run("apply facts", of="fact")
    (tmp_path / "facts" / "b.yaml").write_text("name: Big\nvalue: '{node[name]}'\n")
    also = run("apply facts", of="fact")

    assert refused.status == also.status == 1
    assert "facts/b.yaml: /0: this is a built-in fact" in refused.errors
    assert "facts/a.yaml: /0/value: " in also.errors
    assert "facts/b.yaml: /name: must be a lower-case letter" in also.errors
    assert "Nothing was changed." in also.errors


def test_the_vocabulary_is_listed(run: Run) -> None:
    names = {each["name"]: each for each in run("vocabulary", of="fact").rows}
    assert names["node[boot_mode]"]["values"] == "uefi, bios"
    assert [each["name"] for each in run("vocabulary vendor node[owner]", of="fact").rows] == ["vendor", "owner"]
    operators = {each["operator"]: each["operand"] for each in run("vocabulary --operators", of="fact").rows}
    assert (operators["in"], operators["is absent"], operators["="]) == ("several", "none", "one")
