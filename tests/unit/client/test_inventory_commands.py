from __future__ import annotations

import json

from ironic_rules.client import inspection_commands
from tests.unit.client.openstack_app import Connection, run

NOTHING = {"added": [], "removed": [], "changed": []}
DIFF = {
    "from": {"version": 1}, "to": {"version": 2}, "interfaces": NOTHING, "pci_devices": NOTHING,
    "firmware_components": NOTHING, "firmware": {"version": {"before": "1", "after": "2"}}, "memory": {},
    "disks": {"added": [{"name": "/dev/sdb", "serial": "B"}], "removed": [{"name": "/dev/sdc"}], "changed": [
        {"identity": {"serial": "A"}, "changes": {"size": {"before": 1, "after": None}, "hctl": {"after": "0:0"}}}]},
    "patch": [{"op": "remove", "path": "/disks/1"}, {"op": "replace", "path": "/disks/0/size", "value": None}]}


def test_versions_are_listed():
    version = {**dict.fromkeys(inspection_commands._VERSION), "version": 7, "status": "processed"}
    service = Connection(lambda *request: {"versions": [version]})

    status, printed = run(inspection_commands.ListVersions, service, "a/b", "-f", "value")

    assert (status, printed.strip()) == (0, "7 processed None None None")
    assert service.requests == [("GET", "/v1/nodes/a%2Fb/inventory/versions?", None)]


def test_differences_are_rows():
    service = Connection(lambda *request: DIFF)

    status, printed = run(inspection_commands.DiffVersions, service, "n", "-f", "json")

    assert status == 0
    assert [tuple(row.values()) for row in json.loads(printed)] == [
        ("disks", "B", "added", '{"name": "/dev/sdb", "serial": "B"}'),
        ("disks", "/dev/sdc", "removed", '{"name": "/dev/sdc"}'),
        ("disks", "A", "changed", 'size: 1 -> null; hctl: nothing -> "0:0"'),
        ("firmware", "", "changed", 'version: "1" -> "2"')]
    assert service.requests == [("GET", "/v1/nodes/n/inventory/diff", None)]


def test_the_patch_of_two_versions():
    service = Connection(lambda *request: DIFF)

    _, printed = run(inspection_commands.DiffVersions, service, "n", "--from", "3", "--to", "5", "--patch", "-f",
                     "json")

    assert [tuple(row.values()) for row in json.loads(printed)] == [
        ("remove", "/disks/1", ""), ("replace", "/disks/0/size", "null")]
    assert service.requests == [("GET", "/v1/nodes/n/inventory/diff?from=3&to=5", None)]
