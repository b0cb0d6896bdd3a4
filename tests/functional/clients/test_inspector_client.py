"""python-ironic-inspector-client and its ``openstack`` commands manage rules as they did in Inspector."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ironic_inspector_client
import pytest

from tests.functional import databases, separate
from tests.functional.api.conftest import served

DRIVER = Path(__file__).with_name("openstack_driver.py")
UUID = "11111111-1111-4111-8111-111111111111"
CONDITION = {"field": "memory_mb", "op": "ge", "value": 4096}
ACTION = {"action": "set-capability", "name": "profile", "value": "compute"}


@pytest.fixture(scope="module", params=["sqlite", pytest.param("mysql", marks=pytest.mark.long)])
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of an API in this process with SQLite, or of a service with RabbitMQ and MariaDB."""
    if request.param == "sqlite":
        with databases.migrated_database("sqlite") as place:
            database = databases.open_database(place)
            with served(database) as web:
                yield str(web.base_url).rstrip("/")
            database.dispose()
    else:
        with separate.running(request.param, tmp_path_factory.mktemp("inspector-client"), "") as service:
            yield service.url


def client(url: str, version: Any = None) -> ironic_inspector_client.ClientV1:
    named = {} if version is None else {"api_version": version}
    return ironic_inspector_client.ClientV1(inspector_url=url, **named)


def commands(url: str, folder: Path, *given: list[str]) -> list[tuple[int, str, str]]:
    """Run ``openstack baremetal introspection rule …`` for each of ``given``; return status, output and errors."""
    options = ["--os-auth-type", "none", "--os-endpoint", url, "--inspector-url", url, "baremetal", "introspection",
               "rule"]
    done = subprocess.run(
        [sys.executable, DRIVER], input=json.dumps([[*options, *words] for words in given]), cwd=folder, text=True,
        env={name: value for name, value in os.environ.items() if not name.startswith("OS_")}, capture_output=True,
        timeout=180, check=True)
    return [(status, output, errors) for status, output, errors in json.loads(done.stdout)]


def test_the_library_finds_the_versions_and_manages_rules(url):
    found = client(url)
    created = found.rules.create([CONDITION], [ACTION], UUID, "compute nodes")
    listed, shown = found.rules.get_all(), found.rules.get(UUID)
    found.rules.delete(UUID)
    found.rules.create([], [ACTION])
    found.rules.delete_all()

    assert found.server_api_versions() == ((1, 0), (1, 18))
    assert created["uuid"] == UUID
    assert [(rule["uuid"], rule["description"]) for rule in listed] == [(UUID, "compute nodes")]
    assert shown["conditions"] == [{**CONDITION, "invert": False, "multiple": "any"}]
    assert shown["actions"] == [ACTION]
    assert found.rules.get_all() == []
    with pytest.raises(ironic_inspector_client.VersionNotSupported):
        client(url, (1, 19))


@pytest.mark.parametrize("version", [(1, 0), (1, 18)])
def test_the_library_shows_the_text_of_an_error(url, version):
    found = client(url, version)
    with pytest.raises(ironic_inspector_client.ClientError) as missing:
        found.rules.get(UUID)
    with pytest.raises(ironic_inspector_client.ClientError) as bad:
        found.rules.create([{"field": "a", "op": "unheard-of"}], [ACTION])
    found.rules.create([], [ACTION], UUID)
    with pytest.raises(ironic_inspector_client.ClientError) as double:
        found.rules.create([], [ACTION], UUID)
    found.rules.delete_all()

    assert str(missing.value) == f"Legacy rule {UUID} could not be found."
    assert "/conditions/0/op" in str(bad.value)
    assert "already exists" in str(double.value)


def test_the_commands_import_list_show_delete_and_purge(url, tmp_path):
    (tmp_path / "rules.json").write_text(json.dumps([
        {"uuid": UUID, "description": "compute nodes", "conditions": [CONDITION], "actions": [ACTION]},
        {"description": "others", "actions": [ACTION]}]))
    (tmp_path / "bad.yaml").write_text("conditions: []\nactions: []\n")
    imported, listed, shown, deleted, bad, rest, purged, nothing = commands(
        url, tmp_path, ["import", "rules.json", "-f", "json"], ["list", "-f", "json"], ["show", UUID, "-f", "json"],
        ["delete", UUID], ["import", "bad.yaml"], ["list", "-f", "json"], ["purge"], ["list", "-f", "json"])

    for status, _, errors in (imported, listed, shown, deleted, rest, purged, nothing):
        assert status == 0, errors
    assert json.loads(imported[1]) == json.loads(listed[1])
    assert json.loads(listed[1])[0] == {"UUID": UUID, "Description": "compute nodes"}
    assert json.loads(shown[1])["actions"] == [ACTION]
    assert bad[0] == 1
    assert "/actions" in bad[2]
    assert [rule["Description"] for rule in json.loads(rest[1])] == ["others"]
    assert json.loads(nothing[1]) == []
