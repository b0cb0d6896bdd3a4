"""Nova's clients: ``openstack flavor …`` and openstacksdk's ``conn.compute``, with flavors of this service."""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import openstack
import pytest
from openstack import exceptions

from tests.functional import databases
from tests.functional.api import conftest as api

# The library calls methods that it has itself deprecated.
pytestmark = pytest.mark.filterwarnings("ignore::PendingDeprecationWarning:openstack")

#: Runs several commands in one process, each as ``openstack`` does: a start takes longer than a command.
RUNNER = """
import contextlib, io, json, sys
from openstackclient import shell
results = []
for words in json.load(sys.stdin):
    output, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        try:
            status = shell.main(words)
        except SystemExit as error:
            status = error.code
    results.append([status, output.getvalue(), errors.getvalue()])
json.dump(results, sys.stdout)
"""
SPECS = {"resources:CUSTOM_GOLD": "1", "resources:VCPU": "0", "resources:MEMORY_MB": "0", "resources:DISK_GB": "0"}


@pytest.fixture
def endpoint() -> Iterator[str]:
    """The URL of an API in this process."""
    with databases.migrated_database("sqlite") as url:
        database = databases.open_database(url)
        with api.served(database) as client:
            yield str(client.base_url).rstrip("/")
        database.dispose()


class Discovery(http.server.BaseHTTPRequestHandler):
    """Keystone's version document, and nothing else: commands for flavors look for Keystone, and do not call it."""

    def do_GET(self) -> None:
        url = f"http://{self.headers['Host']}/v3/"
        body = json.dumps({"version": {"id": "v3.14", "status": "stable", "links": [{"rel": "self", "href": url}]}})
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *arguments: Any) -> None:
        """Print nothing."""


@contextlib.contextmanager
def keystone() -> Iterator[str]:
    """Serve :class:`Discovery`; yield its URL."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Discovery) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v3"
        server.shutdown()
        thread.join()


def openstack_commands(endpoint: str, *commands: list[str], version: str = "2.86") -> list[tuple[int, str, str]]:
    """Run ``openstack`` commands; return status, output and errors of each."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OS_")}
    environment |= {"OS_AUTH_TYPE": "none", "OS_ENDPOINT": endpoint,
                    "OS_COMPUTE_ENDPOINT_OVERRIDE": f"{endpoint}/compute/v2.1"}
    with keystone() as identity:
        environment["OS_IDENTITY_ENDPOINT_OVERRIDE"] = identity
        return _run(environment, commands, version)


def _run(environment: dict[str, str], commands: Any, version: str) -> list[tuple[int, str, str]]:
    given = [["--os-compute-api-version", version, "flavor", *words] for words in commands]
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", RUNNER], input=json.dumps(given), text=True,
                          capture_output=True, timeout=180, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return [tuple(result) for result in json.loads(done.stdout)]


def parsed(result: tuple[int, str, str]) -> Any:
    status, output, errors = result
    assert status == 0, errors
    return json.loads(output)


def properties(specs: dict[str, str]) -> list[str]:
    return [word for key, value in specs.items() for word in ("--property", f"{key}={value}")]


def test_openstack_flavor_works_unchanged(endpoint):
    as_json = ["-f", "json"]
    results = openstack_commands(
        endpoint,
        ["create", "--id", "gold", "--ram", "1024", "--vcpus", "2", "--disk", "10", "--description", "Gold",
         *properties(SPECS), "bm.gold", *as_json],
        ["set", *properties({"trait:CUSTOM_RAID": "required", "hw:cpu_policy": "dedicated"}), "bm.gold"],
        ["show", "bm.gold", *as_json],
        ["set", *properties({"hw:cpu_policy": "deddddicated"}), "bm.gold"],
        ["unset", "--property", "hw:cpu_policy", "gold"],
        ["set", "--description", "Better", "gold"],
        ["list", "--long", *as_json],
        ["create", "--ram", "1", "--vcpus", "1", "--disk", "0", "--private", "hidden", *as_json],
        ["list", *as_json], ["list", "--all", *as_json],
        ["delete", "gold", "hidden"], ["list", *as_json],
        ["show", "gold"])

    created, shown, listed = parsed(results[0]), parsed(results[2]), parsed(results[6])
    assert (created["id"], created["description"], created["properties"]) == ("gold", "Gold", SPECS)
    assert shown["properties"] == SPECS | {"trait:CUSTOM_RAID": "required", "hw:cpu_policy": "dedicated"}
    assert (shown["ram"], shown["vcpus"], shown["disk"], shown["swap"]) == (1024, 2, 10, 0)
    assert (results[1][0], results[4][0], results[5][0], results[10][0]) == (0, 0, 0, 0)
    assert results[3][0] == 1
    assert "hw:cpu_policy" in results[3][1] + results[3][2]
    assert [(item["ID"], item["Properties"]) for item in listed] == [
        ("gold", SPECS | {"trait:CUSTOM_RAID": "required"})]
    hidden = parsed(results[7])
    assert hidden["os-flavor-access:is_public"] is False
    assert [item["Name"] for item in parsed(results[8])] == ["bm.gold"]
    assert sorted(item["Name"] for item in parsed(results[9])) == ["bm.gold", hidden["name"]]
    assert parsed(results[11]) == []
    assert results[12][0] == 1
    assert "No Flavor found for gold" in results[12][1] + results[12][2]


def test_the_oldest_version_stores_what_is_not_valid_and_has_the_old_body(endpoint):
    results = openstack_commands(
        endpoint, ["create", "--id", "old", "--ram", "1", "--vcpus", "1", "--disk", "1", "old", "-f", "json"],
        ["set", *properties({"hw:cpu_policy": "deddddicated", "what": "ever"}), "old"],
        ["show", "old", "-f", "json"], version="2.1")

    assert results[1][0] == 0, results[1]
    shown = parsed(results[2])
    assert shown["properties"] == {"hw:cpu_policy": "deddddicated", "what": "ever"}
    assert shown["description"] is None


@pytest.mark.parametrize("version", ["2.1", "2.55", "2.61", "2.75", "2.86"])
def test_openstacksdk_flavors_and_extra_specs(endpoint, version):
    with openstack.connect(
            load_yaml_config=False, load_envvars=False, auth_type="none", endpoint=endpoint,
            compute_endpoint_override=f"{endpoint}/compute/v2.1", compute_default_microversion=version) as conn:
        compute = conn.compute
        created = compute.create_flavor(name="gold", ram=8, vcpus=1, disk=3, swap=0, id="gold", is_public=True)
        compute.create_flavor_extra_specs(created, SPECS)
        compute.update_flavor_extra_specs_property(created, "trait:CUSTOM_RAID", "required")
        one = compute.get_flavor_extra_specs_property(created, "trait:CUSTOM_RAID")
        compute.delete_flavor_extra_specs_property(created, "resources:VCPU", ignore_missing=False)
        wanted = {**SPECS, "trait:CUSTOM_RAID": "required"}
        del wanted["resources:VCPU"]
        found = compute.find_flavor("gold", ignore_missing=False, get_extra_specs=True)
        listed = list(compute.flavors(details=True, limit=1))

        assert (one, found.id, found.extra_specs) == ("required", "gold", wanted)
        assert [flavor.name for flavor in listed] == ["gold"]
        with pytest.raises(exceptions.ConflictException, match="already exists"):
            compute.create_flavor(name="gold", ram=8, vcpus=1, disk=3)
        with pytest.raises(exceptions.NotFoundException, match="has no extra spec"):
            compute.delete_flavor_extra_specs_property(created, "resources:VCPU", ignore_missing=False)
        if version == "2.86":
            with pytest.raises(exceptions.BadRequestException, match="Did you mean 'hw:cpu_policy'"):
                compute.update_flavor_extra_specs_property(created, "hw:cpu_pollllicy", "shared")
        body = compute.get(f"/flavors/{created.id}", microversion=version).json()["flavor"]
        minor = int(version.partition(".")[2])
        assert ("description" in body, "extra_specs" in body) == (minor >= 55, minor >= 61)
        assert body["swap"] == (0 if minor >= 75 else "")
        if minor >= 55:
            assert compute.update_flavor("gold", description="x").description == "x"
        compute.delete_flavor(created, ignore_missing=False)
        assert compute.find_flavor("gold") is None


def test_the_version_document_needs_no_credentials_and_errors_are_novas(endpoint):
    with openstack.connect(load_yaml_config=False, load_envvars=False, auth_type="none",
                           endpoint=f"{endpoint}/compute/v2.1") as conn:
        session = conn.session
        document = session.get(f"{endpoint}/compute/v2.1/").json()["version"]
        too_new = session.get(f"{endpoint}/compute/v2.1/flavors", raise_exc=False,
                              headers={"OpenStack-API-Version": "compute 2.999"})
        absent = session.get(f"{endpoint}/compute/v2.1/servers", raise_exc=False)
        listed = session.get(f"{endpoint}/compute", raise_exc=False).json()["versions"]

    assert (document["id"], document["min_version"], document["version"]) == ("v2.1", "2.1", "2.86")
    assert document["links"] == [{"rel": "self", "href": f"{endpoint}/compute/v2.1/"}]
    assert [version["id"] for version in listed] == ["v2.1"]
    assert too_new.json()["computeFault"]["code"] == 406
    assert absent.json()["itemNotFound"]["message"] == "There is no such resource."
